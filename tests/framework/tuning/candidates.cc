#include "tests/framework/tuning/candidates.h"

#include <functional>
#include <utility>

namespace skiff::candidates {
namespace {

KernelDef Candidate(std::string name, int priority, float mark) {
  return {.name = std::move(name),
          .prepare =
              [mark](PrepareContext& context) {
                const float amount = context.Attr<float>("amount") + mark;
                return MakeKernel([amount](const KernelContext& run) {
                  const auto x = run.input(0).values<float>();
                  for (size_t i = 0; i < x.size(); ++i) {
                    run.output(0).data<float>()[i] = x[i] + amount;
                  }
                });
              },
          .accepts = {},
          .is_worthwhile = {},
          .priority = priority};
}

bool HasOddRows(const OpContext& context) {
  const Shape& shape = context.Input("X").shape;
  return shape[shape.rank() - 1] % 2 == 1;
}

OpDef ShiftDef(const std::string& type) {
  OpDef def;
  def.type = type;
  def.doc = "A test's op.";
  def.inputs = {{.name = "X", .doc = "numbers"},
                {.name = "Filter", .doc = "unread", .dispensable = true}};
  def.outputs = {{.name = "Out", .doc = "X + amount"},
                 {.name = "Copy", .doc = "unwritten", .dispensable = true}};
  def.attrs = {
      {.name = "amount", .type = AttrType::kFloat, .default_value = 0.0f, .doc = "what is added"}};
  def.infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
  def.no_gradient_reason = "tests need none";
  return def;
}

void AddShift(OpRegistry& registry, OpDef def) {
  const std::string type = def.type;
  registry.Add(std::move(def));
  registry.AddKernel(type, Candidate("low", 1, 1));
  registry.AddKernel(type, Candidate("high", 2, 2));
  KernelDef odd = Candidate("odd", 3, 3);
  odd.accepts = HasOddRows;
  odd.is_worthwhile = [](const OpContext&) { return false; };
  registry.AddKernel(type, std::move(odd));
  KernelDef plain = Candidate("plain", 0, 4);
  plain.is_reference = true;
  registry.AddKernel(type, std::move(plain));
}

}  // namespace

void RegisterShift(OpRegistry& registry) {
  AddShift(registry, ShiftDef("shift"));
  OpDef random = ShiftDef("shift_random");
  random.random = true;
  AddShift(registry, std::move(random));
  OpDef checked = ShiftDef("shift_checked");
  checked.inputs[0].checks_data = true;
  AddShift(registry, std::move(checked));
  OpDef effect = ShiftDef("shift_effect");
  effect.has_side_effect = true;
  AddShift(registry, std::move(effect));
}

ShiftOp::ShiftOp(const OpRegistry& registry, int64_t row, const std::string& type)
    : registry_(registry), op_(type) {
  x.shape = Shape({2, row});
  op_.SetInput("X", {"x"});
  op_.SetOutput("Out", {"out"});
}

OpContext ShiftOp::Context() const {
  const OpDef& def = registry_.Get(op_.type);
  TensorMeta in = x;
  if (in_layout) in.layout = *in_layout;
  return OpContext(op_, def, std::vector<TensorMeta>(InputOrder(def, op_).size(), in),
                   std::vector<TensorMeta>(OutputOrder(def, op_).size(), x));
}

}  // namespace skiff::candidates
