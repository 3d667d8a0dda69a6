#include "tests/framework/executor/tiny_ops.h"

#include <atomic>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"

namespace skiff::tiny {
namespace {

std::atomic<int> derived_refreshes{0};

std::function<void()>& Meanwhile() {
  static auto& meanwhile = *new std::function<void()>;
  return meanwhile;
}

std::function<void()>& OnBind() {
  static auto& on_bind = *new std::function<void()>;
  return on_bind;
}

std::function<void(const KernelContext&)>& OnExchange() {
  static auto& on_exchange = *new std::function<void(const KernelContext&)>;
  return on_exchange;
}

OpDef Define(std::string type, std::vector<std::string> inputs, std::string output) {
  OpDef def;
  def.type = std::move(type);
  def.doc = "A test's op.";
  for (const std::string& input : inputs)
    def.inputs.push_back({.name = input, .doc = "an operand"});
  def.outputs.push_back({.name = output, .doc = "the result"});
  def.infer = [input = inputs.empty() ? "" : inputs[0], output](OpContext& context) {
    context.SetOutputLike(output, input);
  };
  def.no_gradient_reason = "tests of the executor need none";
  return def;
}

OpDef DefineLoop(std::string type) {
  OpDef def = Define(std::move(type), {"X"}, "Out");
  for (std::vector<SlotDef>* slots : {&def.inputs, &def.outputs}) {
    slots->front().duplicable = true;
    slots->front().dispensable = true;
  }
  def.attrs = {{.name = "sub_block", .type = AttrType::kBlock, .doc = "the body"}};
  def.infer = [](OpContext&) {};
  return def;
}

template <typename Element>
KernelFactory ElementKernel(Element element) {
  return [element](PrepareContext& context) {
    const float factor = context.HasAttr("factor") ? context.Attr<float>("factor") : 1.0f;
    return MakeKernel([element, factor](const KernelContext& kernel) {
      const auto x = kernel.input(0).values<float>();
      const float* y = kernel.inputs.size() > 1 ? kernel.input(1).data<float>() : x.data();
      float* out = kernel.output(0).data<float>();
      for (size_t i = 0; i < x.size(); ++i) out[i] = element(x[i], y[i], factor);
    });
  };
}

void AddOp(OpRegistry& registry, OpDef def, KernelFactory prepare) {
  const std::string type = def.type;
  registry.Add(std::move(def));
  registry.AddKernel(type, {.prepare = std::move(prepare)});
}

std::unique_ptr<Kernel> PrepareNegated(PrepareContext& context) {
  const int64_t bytes = context.Input("W").shape.element_count() * 4;
  const int form = context.RequestDerivedForm(
      {.inputs = {0}, .bytes = bytes, .refresh = [](const KernelContext& run, void* derived) {
         const Tensor& w = run.input(0);
         ++derived_refreshes;
         for (int64_t i = 0; i < w.element_count(); ++i) {
           static_cast<float*>(derived)[i] = -w.data<float>()[i];
         }
       }});
  return MakeKernel([form, bytes](const KernelContext& kernel) {
    std::memcpy(kernel.output(0).raw_data(), kernel.derived(form), static_cast<size_t>(bytes));
  });
}

std::unique_ptr<Kernel> PrepareWorkspace(PrepareContext& context) {
  const int64_t bytes = context.Input("X").shape.element_count() * 4;
  const int workspace = context.RequestWorkspace(bytes);
  return MakeKernel([workspace, bytes](const KernelContext& kernel) {
    void* aside = kernel.workspace(workspace);
    std::memcpy(aside, kernel.input(0).raw_data(), static_cast<size_t>(bytes));
    std::memset(kernel.output(0).raw_data(), 0, static_cast<size_t>(bytes));
    std::memcpy(kernel.output(0).raw_data(), aside, static_cast<size_t>(bytes));
  });
}

std::unique_ptr<Kernel> PrepareBound(PrepareContext& context) {
  class BoundCopy final : public Kernel {
   public:
    explicit BoundCopy(int64_t bytes) : bytes_(bytes) {}
    void Bind(const KernelContext& context) override {
      if (OnBind()) OnBind()();
      from_ = context.input(0).raw_data();
      to_ = context.output(0).raw_data();
    }
    void Run(const KernelContext&) override {
      std::memcpy(to_, from_, static_cast<size_t>(bytes_));
    }

   private:
    int64_t bytes_;
    const void* from_ = nullptr;
    void* to_ = nullptr;
  };
  return std::make_unique<BoundCopy>(context.Input("X").shape.element_count() * 4);
}

std::unique_ptr<Kernel> PrepareOnes(PrepareContext&) {
  return MakeKernel([](const KernelContext& kernel) {
    for (float& value : kernel.output(0).values<float>()) value = 1;
  });
}

std::unique_ptr<Kernel> PrepareCheck(PrepareContext& context) {
  return MakeKernel([least = context.Attr<float>("least")](const KernelContext& kernel) {
    const auto x = kernel.input(0).values<float>();
    for (size_t i = 0; i < x.size(); ++i) {
      SKIFF_ENFORCE(x[i] >= least, kOutOfRange, "element ", i, " is ", x[i], ", expected at least ",
                    least);
      kernel.output(0).data<float>()[i] = x[i];
    }
  });
}

// In two halves, so that the memory of a workspace and of the input is used to the end.
std::unique_ptr<Kernel> PrepareExchange(PrepareContext& context) {
  const int64_t bytes = context.Input("X").shape.element_count() * 4;
  const int workspace = context.RequestWorkspace(bytes);
  const auto factor = context.Attr<float>("factor");
  return MakeKernel([workspace, factor](const KernelContext& kernel) {
    const auto x = kernel.input(0).values<float>();
    auto* aside = static_cast<float*>(kernel.workspace(workspace));
    for (size_t i = 0; i < x.size() / 2; ++i) aside[i] = factor * x[i];
    if (OnExchange()) OnExchange()(kernel);
    for (size_t i = x.size() / 2; i < x.size(); ++i) aside[i] = factor * x[i];
    std::memcpy(kernel.output(0).raw_data(), aside, x.size() * sizeof(float));
  });
}

}  // namespace

void SetOnExchange(std::function<void(const KernelContext&)> on_exchange) {
  OnExchange() = std::move(on_exchange);
}

void SetMeanwhile(std::function<void()> meanwhile) { Meanwhile() = std::move(meanwhile); }

void SetOnBind(std::function<void()> on_bind) { OnBind() = std::move(on_bind); }

int DerivedRefreshes() { return derived_refreshes; }

void RegisterTinyOps(OpRegistry& registry) {
  OpDef add = Define("tiny_add", {"X", "Y"}, "Out");
  add.in_place = {{"X", "Out"}};
  add.elementwise = true;
  AddOp(registry, add, ElementKernel([](float x, float y, float) { return x + y; }));

  OpDef scale = Define("tiny_scale", {"X"}, "Out");
  scale.in_place = {{"X", "Out"}};
  scale.elementwise = true;
  scale.attrs = {{.name = "factor", .type = AttrType::kFloat, .default_value = 1.0f, .doc = ""}};
  AddOp(registry, scale, ElementKernel([](float x, float, float factor) { return factor * x; }));

  OpDef copy = Define("tiny_copy", {"X"}, "Out");
  copy.elementwise = true;
  AddOp(registry, copy, ElementKernel([](float x, float, float) { return x; }));

  OpDef sum = Define("tiny_sum", {"X"}, "Out");
  sum.infer = [](OpContext& context) { context.SetOutput("Out", {1}, DType::kFloat32); };
  AddOp(registry, sum, [](PrepareContext&) {
    return MakeKernel([](const KernelContext& kernel) {
      float total = 0;
      for (float value : kernel.input(0).values<float>()) total += value;
      kernel.output(0).data<float>()[0] = total;
    });
  });

  OpDef sgd = Define("tiny_sgd", {"Param", "Grad"}, "ParamOut");
  sgd.in_place = {{"Param", "ParamOut"}};
  sgd.elementwise = true;
  AddOp(registry, sgd, ElementKernel([](float p, float g, float) { return p - g; }));

  OpDef random = Define("tiny_random", {"X"}, "Out");
  random.random = true;
  AddOp(registry, random, [](PrepareContext&) {
    return MakeKernel([](const KernelContext& kernel) {
      const Philox philox(kernel.random_key());
      auto out = kernel.output(0).values<float>();
      for (size_t i = 0; i < out.size(); ++i) out[i] = UnitFloat(philox.At(i)[0]);
    });
  });

  OpDef meanwhile = Define("tiny_meanwhile", {"X"}, "Out");
  meanwhile.has_side_effect = true;
  AddOp(registry, meanwhile, [](PrepareContext&) {
    return MakeKernel([](const KernelContext& kernel) {
      Meanwhile()();
      CopyTensor(kernel.input(0), &kernel.output(0));
    });
  });

  for (const char* type : {"tiny_exchange", "tiny_exchange_copy"}) {
    OpDef exchange = Define(type, {"X"}, "Out");
    exchange.collective = true;
    if (exchange.type == "tiny_exchange") exchange.in_place = {{"X", "Out"}};
    exchange.attrs = {
        {.name = "factor", .type = AttrType::kFloat, .default_value = 1.0f, .doc = ""}};
    AddOp(registry, exchange, PrepareExchange);
  }

  AddOp(registry, Define("tiny_negated", {"W"}, "Out"), PrepareNegated);
  AddOp(registry, Define("tiny_workspace", {"X"}, "Out"), PrepareWorkspace);
  AddOp(registry, Define("tiny_bound", {"X"}, "Out"), PrepareBound);
  OpDef fail = Define("tiny_fail", {"X"}, "Out");
  fail.inputs[0].checks_data = true;
  AddOp(registry, fail, [](PrepareContext&) {
    return MakeKernel([](const KernelContext&) {
      Throw(ErrorCode::kInvalidArgument, "label 12 is outside [0, 10)");
    });
  });
  for (const char* type : {"tiny_check", "tiny_recheck"}) {
    OpDef check = Define(type, {"X"}, "Out");
    check.inputs[0].checks_data = true;
    if (check.type == "tiny_recheck") check.data_checked_by = "tiny_check";
    check.attrs = {{.name = "least", .type = AttrType::kFloat, .default_value = 0.0f, .doc = ""}};
    AddOp(registry, check, PrepareCheck);
  }

  OpDef ones_like = Define("tiny_ones_like", {"X"}, "Out");
  ones_like.inputs[0].shape_only = true;
  AddOp(registry, ones_like, PrepareOnes);
  for (const char* type : {"tiny_while", "tiny_while_grad"}) registry.Add(DefineLoop(type));

  OpDef fill = Define("tiny_fill", {}, "Out");
  fill.attrs = {{.name = "shape", .type = AttrType::kLongs, .doc = "the extents"}};
  fill.infer = [](OpContext& context) {
    const std::vector<int64_t> dims = context.IntsAttr("shape");
    context.SetOutput("Out", Shape(std::span<const int64_t>(dims)), DType::kFloat32);
  };
  AddOp(registry, fill, PrepareOnes);
}

}  // namespace skiff::tiny

namespace skiff {

// Tests that link the tiny ops link no family: the default registry is theirs, too.
OpRegistry& DefaultOpRegistry() {
  static OpRegistry& registry = *[] {
    auto* made = new OpRegistry;
    tiny::RegisterTinyOps(*made);
    return made;
  }();
  return registry;
}

}  // namespace skiff
