#include "tests/harness/perturbed_op.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>

#include "framework/base/dtype.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/ir/text.h"
#include "framework/tensor/shape.h"
#include "tests/harness/case_op.h"
#include "tests/harness/gradient_check.h"
#include "tests/harness/prepared_op.h"
#include "tests/harness/tolerance.h"

namespace skiff::harness {
namespace {

constexpr unsigned char kPoison = 0xFF;
constexpr unsigned char kOtherPoison = 0xA5;

// Larger inputs and outputs would take more time without showing more.
constexpr int64_t kMaxInputElements = 4096;
constexpr double kMaxOutputElements = 1 << 20;

// A huge dim that an empty tensor may have. A kernel that loops over it, or makes a table of its
// size, doesn't return in time.
constexpr int64_t kHugeDim = int64_t{1} << 40;

constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64,
                             DType::kBool};

template <typename T>
std::vector<T> OtherNumbers(T value) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> others = {T(-2), T(-1), T(0), T(1), T(2), T(7), Limits::lowest(), Limits::max()};
  if constexpr (std::is_floating_point_v<T>) {
    others.push_back(Limits::infinity());
    others.push_back(-Limits::infinity());
    others.push_back(Limits::quiet_NaN());
  } else {
    if (value > Limits::lowest()) others.push_back(static_cast<T>(value - 1));
    if (value < Limits::max()) others.push_back(static_cast<T>(value + 1));
  }
  std::erase(others, value);
  return others;
}

// Returns longs, which are accepted in place of ints, that no int holds. The last one becomes
// `value` if a cast truncates it.
std::vector<int64_t> WideNumbers(int32_t value) {
  using Limits = std::numeric_limits<int64_t>;
  return {Limits::min(), Limits::max(), (int64_t{1} << 32) + value};
}

template <typename T>
std::vector<Attribute> OtherValues(const T& value) {
  std::vector<Attribute> others;
  if constexpr (std::is_same_v<T, bool>) {
    others.emplace_back(!value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    for (const T other : OtherNumbers(value)) others.emplace_back(other);
    if constexpr (std::is_same_v<T, int32_t>) {
      for (const int64_t wide : WideNumbers(value)) others.emplace_back(wide);
    }
  } else if constexpr (std::is_same_v<T, std::string>) {
    others.emplace_back(std::string());
    others.emplace_back(std::string("no_such_value"));
  }
  return others;
}

template <typename T>
std::vector<Attribute> OtherValues(const std::vector<T>& values) {
  std::vector<Attribute> others = {Attribute(std::vector<T>{})};
  std::vector<T> longer = values;
  longer.push_back(values.empty() ? T() : values.back());
  others.emplace_back(std::move(longer));
  if (values.empty()) return others;
  others.emplace_back(std::vector<T>(values.begin(), values.end() - 1));
  if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
    for (const size_t i : std::set<size_t>{0, values.size() - 1}) {
      for (const T other : OtherNumbers(values[i])) {
        std::vector<T> changed = values;
        changed[i] = other;
        others.emplace_back(std::move(changed));
      }
    }
  }
  if constexpr (std::is_same_v<T, int32_t>) {
    for (const int64_t wide : WideNumbers(values.back())) {
      std::vector<int64_t> changed(values.begin(), values.end());
      changed.back() = wide;
      others.emplace_back(std::move(changed));
    }
  }
  return others;
}

// Returns a tensor of another shape with the same numbers in order, repeated or cut off as needed.
Tensor Resized(const Tensor& tensor, const Shape& shape) {
  const Array from = ToArray(tensor);
  Array to{.shape = shape, .values = {}};
  const auto count = static_cast<size_t>(shape.element_count());
  to.values.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    to.values.push_back(from.values.empty() ? 0 : from.values[i % from.values.size()]);
  }
  if (from.is_selected_rows()) {
    to.height = from.height;
    for (int64_t i = 0; i < shape[0]; ++i) {
      to.rows.push_back(from.rows.empty() ? -1
                                          : from.rows[static_cast<size_t>(i) % from.rows.size()]);
    }
  }
  return ToTensor(to, tensor.dtype());
}

// Returns whether `tensor` may get this shape without taking much memory.
bool IsPossible(const Tensor& tensor, const Shape& shape) {
  if (tensor.is_selected_rows() && (shape.rank() == 0 || shape[0] > kMaxInputElements))
    return false;
  try {
    return static_cast<double>(shape.element_count()) <= kMaxOutputElements;
  } catch (const Error&) {
    return false;
  }
}

// Returns the shape with `to` for every dim that equals `from`.
Shape Replaced(Shape shape, int64_t from, int64_t to) {
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == from) shape[axis] = to;
  }
  return shape;
}

std::vector<Shape> OtherShapes(const Shape& shape) {
  std::vector<Shape> others;
  const auto add = [&](const Shape& other) {
    if (!(other == shape) && std::ranges::count(others, other) == 0) others.push_back(other);
  };
  for (int axis = 0; axis < shape.rank(); ++axis) {
    for (const int64_t dim : {int64_t{0}, int64_t{1}, shape[axis] - 1, shape[axis] + 1}) {
      Shape other = shape;
      other[axis] = dim;
      if (dim >= 0) add(other);
    }
  }
  for (int axis = 0; axis < shape.rank(); ++axis) {
    Shape other = shape;
    other[axis] = 0;
    if (shape.rank() > 1) other[(axis + 1) % shape.rank()] = kHugeDim;
    add(other);
  }
  add({kHugeDim, 0});
  add(Shape{});
  if (shape.rank() > 0) add(Shape(shape.dims().first(static_cast<size_t>(shape.rank()) - 1)));
  if (shape.rank() < Shape::kMaxRank) {
    Shape higher = shape;
    higher.Append(2);
    add(higher);
  }
  return others;
}

class Perturbations {
 public:
  Perturbations(const OpDef& def, const Op& op, const NamedTensors& inputs)
      : def_(def), op_(op), inputs_(inputs) {}

  std::vector<PerturbedOp> All() {
    for (const AttrDef& attr : def_.attrs) AddAttributes(attr);
    for (const std::string& name : InputOrder(def_, op_)) {
      if (name != kEmptyVarName && seen_.insert(name).second) AddForms(name);
    }
    for (const SlotDef& slot : def_.inputs) AddArguments(slot.name);
    AddEmptyForms();
    return std::move(all_);
  }

 private:
  void AddAttributes(const AttrDef& attr) {
    const Attribute* value = EffectiveAttr(op_, attr);
    if (value == nullptr) return;
    std::vector<Attribute> others =
        std::visit([](const auto& held) { return OtherValues(held); }, *value);
    const bool is_string = std::holds_alternative<std::string>(*value);
    others.push_back(is_string ? Attribute(int32_t{1}) : Attribute(std::string("of another type")));
    for (Attribute& other : others) {
      PerturbedOp perturbed{StrCat(attr.name, " = ", PrintAttribute(other)), op_, inputs_};
      perturbed.op.SetAttr(attr.name, std::move(other));
      all_.push_back(std::move(perturbed));
    }
    PerturbedOp without{StrCat("without attribute ", attr.name), op_, inputs_};
    without.op.attrs.erase(attr.name);
    all_.push_back(std::move(without));
  }

  void AddForms(const std::string& name) {
    const Tensor& tensor = inputs_.at(name);
    for (const Shape& shape : OtherShapes(tensor.shape())) {
      if (!IsPossible(tensor, shape)) continue;
      all_.push_back({StrCat(name, " of shape ", shape), op_, inputs_});
      all_.back().inputs[name] = Resized(tensor, shape);
    }
    for (const DType dtype : kDTypes) {
      if (dtype == tensor.dtype()) continue;
      all_.push_back({StrCat(name, " of ", dtype), op_, inputs_});
      all_.back().inputs[name] = Cast(tensor, dtype);
    }
  }

  // Replaces one extent by 0 and another by a huge one in all inputs, so that shapes that fit each
  // other still do.
  void AddEmptyForms() {
    std::set<int64_t> extents;
    for (const auto& [name, tensor] : inputs_) {
      extents.insert(tensor.shape().begin(), tensor.shape().end());
    }
    for (const int64_t empty : extents) {
      for (const int64_t huge : extents) {
        if (empty != huge) AddEmptyForm(empty, huge);
      }
    }
  }

  void AddEmptyForm(int64_t empty, int64_t huge) {
    PerturbedOp perturbed{StrCat("dims of 0 for ", empty, " and ", kHugeDim, " for ", huge), op_,
                          inputs_};
    for (auto& [name, tensor] : perturbed.inputs) {
      const Shape shape = Replaced(Replaced(tensor.shape(), huge, kHugeDim), empty, 0);
      if (!IsPossible(tensor, shape)) return;
      tensor = Resized(tensor, shape);
    }
    all_.push_back(std::move(perturbed));
  }

  void AddArguments(const std::string& slot) {
    const std::vector<std::string>& names = op_.Input(slot);
    if (names.empty()) return;
    std::vector<std::string> fewer(names.begin(), names.end() - 1);
    std::vector<std::string> more = names;
    more.push_back(names.front());
    all_.push_back({StrCat(slot, " of ", fewer.size(), " arguments"), op_, inputs_});
    all_.back().op.SetInput(slot, std::move(fewer));
    all_.push_back({StrCat(slot, " of ", more.size(), " arguments"), op_, inputs_});
    all_.back().op.SetInput(slot, std::move(more));
  }

  const OpDef& def_;
  const Op& op_;
  const NamedTensors& inputs_;
  std::set<std::string> seen_;
  std::vector<PerturbedOp> all_;
};

class PerturbationCheck {
 public:
  PerturbationCheck(const OpRegistry& registry, const OpCase& op_case, DType dtype,
                    PerturbationReport* report)
      : registry_(registry), case_(op_case), dtype_(dtype), report_(report) {}

  void Check() {
    const Op forward = MakeOp(case_);
    const NamedTensors inputs = MakeInputs(case_, dtype_);
    Run(forward, inputs, "nothing changed");
    for (const PerturbedOp& perturbed :
         PerturbationsOf(registry_.Get(forward.type), forward, inputs)) {
      Judge(perturbed.op.type, perturbed.what, [&] {
        Run(perturbed.op, perturbed.inputs, perturbed.what);
        const std::string gradient = perturbed.what + " in the forward op";
        ForEachGradientOp(
            perturbed.op, perturbed.inputs,
            [&](const Op& op, const NamedTensors& values) { Run(op, values, gradient); });
      });
    }
    ForEachGradientOp(forward, inputs, [&](const Op& op, const NamedTensors& values) {
      for (const PerturbedOp& perturbed : PerturbationsOf(registry_.Get(op.type), op, values)) {
        Judge(op.type, perturbed.what,
              [&] { Run(perturbed.op, perturbed.inputs, perturbed.what); });
      }
    });
  }

 private:
  void Fail(const std::string& type, const std::string& what, const std::string& problem) {
    report_->problems.push_back(
        StrCat(CaseName(case_), " ", dtype_, ": ", type, " with ", what, ": ", problem));
  }

  template <typename Body>
  void Judge(const std::string& type, const std::string& what, const Body& body) {
    try {
      body();
      ++report_->computed;
    } catch (const Error&) {
      ++report_->refused;
    } catch (const std::exception& error) {
      Fail(type, what, StrCat("threw an exception that isn't an Error: ", error.what()));
    }
  }

  // Runs the op on every kernel that accepts it. Throws the op's Error.
  void Run(const Op& op, const NamedTensors& inputs, const std::string& what) {
    const OpDef& def = registry_.Get(op.type);
    CheckOp(def, op);
    const OpContext context = ContextOf(def, op, inputs);
    registry_.SelectKernel(context);
    if (!IsSmall(context)) return;
    NamedTensors first;
    std::set<std::string> candidates;
    for (const KernelDef& kernel : registry_.Kernels(op.type)) {
      if (kernel.place != PlaceKind::kCpu || !candidates.insert(kernel.name).second) continue;
      if (registry_.FindKernel(context, kernel.name) == nullptr) continue;
      const std::string where = StrCat(what, ", candidate ", kernel.name);
      const NamedTensors outputs = RunCandidate(op, inputs, kernel.name, where);
      if (first.empty()) {
        first = outputs;
      } else {
        Compare(op.type, first, outputs, where);
      }
    }
  }

  static bool IsSmall(const OpContext& context) {
    return std::ranges::all_of(context.outputs(), [](const TensorMeta& output) {
      double elements = 1;
      for (const int64_t dim : output.shape) elements *= dim < 0 ? 1 : static_cast<double>(dim);
      return elements <= kMaxOutputElements;
    });
  }

  NamedTensors RunCandidate(const Op& op, const NamedTensors& inputs, const std::string& candidate,
                            const std::string& what) {
    PreparedOp prepared(registry_, op, inputs, {.candidate = candidate});
    const auto tell_faults = [&] {
      for (const std::string& fault : prepared.Faults()) Fail(op.type, what, fault);
    };
    const auto launch = [&](unsigned char poison) {
      prepared.Load(inputs, poison);
      try {
        prepared.Run();
      } catch (const Error&) {
        tell_faults();
        throw;
      }
      tell_faults();
      return prepared.Outputs();
    };
    const NamedTensors outputs = launch(kPoison);
    for (const auto& [name, tensor] : launch(kOtherPoison)) {
      if (!SameBits(tensor, outputs.at(name))) {
        Fail(op.type, what, name + " depends on leftovers in memory");
      }
    }
    return outputs;
  }

  void Compare(const std::string& type, const NamedTensors& expected, const NamedTensors& found,
               const std::string& what) {
    for (const auto& [name, tensor] : expected) {
      // What kernels of float32 give in float64 has the precision of float32.
      const bool is_of_float32 = tensor.dtype() == DType::kFloat32 ||
                                 (tensor.dtype() == DType::kFloat64 && dtype_ == DType::kFloat32);
      const double tolerance = is_of_float32
                                   ? std::max(case_.float32_tolerance, Tolerances::kFloat32Gradient)
                                   : Tolerances::Of(tensor.dtype());
      const std::string difference =
          FirstDifference(ToArray(found.at(name)), ToArray(tensor), tolerance);
      if (!difference.empty()) Fail(type, what, StrCat(name, ": ", difference));
    }
  }

  // Runs the forward op, then calls `visit` with each of its gradient ops and the values that these
  // may read.
  template <typename Visit>
  void ForEachGradientOp(const Op& forward, const NamedTensors& inputs, const Visit& visit) {
    if (case_.gradients.empty() || !IsFloat(dtype_)) return;
    const OpContext context = ContextOf(registry_.Get(forward.type), forward, inputs);
    if (!IsSmall(context)) return;
    NamedTensors values = RunForward(registry_, case_, forward, inputs).values;
    const std::vector<std::string> wanted = GradientVariables(case_);
    std::vector<Op> ops = GradientOps(registry_, case_, forward, [&](const std::string& name) {
      return std::ranges::count(wanted, name) > 0;
    });
    for (size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].id < 0) ops[i].id = 100 + static_cast<int64_t>(i);
      visit(ops[i], values);
      PreparedOp prepared(registry_, ops[i], values);
      prepared.Load(values, kPoison);
      prepared.Run();
      for (const auto& [name, tensor] : prepared.Outputs()) values[name] = tensor;
    }
  }

  const OpRegistry& registry_;
  const OpCase& case_;
  const DType dtype_;
  PerturbationReport* report_;
};

}  // namespace

bool IsPerturbed(const OpCase& op_case) {
  if (op_case.benchmark_only) return false;
  for (const auto& [slot, arrays] : op_case.inputs) {
    for (const Array& array : arrays) {
      if (array.shape.element_count() > kMaxInputElements) return false;
    }
  }
  return true;
}

std::vector<PerturbedOp> PerturbationsOf(const OpDef& def, const Op& op,
                                         const NamedTensors& inputs) {
  return Perturbations(def, op, inputs).All();
}

PerturbationReport CheckPerturbations(const OpRegistry& registry, const OpCase& op_case) {
  PerturbationReport report;
  if (!IsPerturbed(op_case)) return report;
  for (const DType dtype : op_case.dtypes) {
    PerturbationCheck(registry, op_case, dtype, &report).Check();
  }
  return report;
}

}  // namespace skiff::harness
