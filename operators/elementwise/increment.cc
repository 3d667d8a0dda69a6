// increment: Out = X + step for a single element, usually in place. Source: Fluid's increment.
//
// So is its gradient op, which is not a derivative: an increment by -step from Out back to X, so
// that a counter runs backwards in the gradient of a loop.
#include <utility>

#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/common/integer.h"

namespace skiff {
namespace {

std::vector<Op> IncrementGradient(const GradContext& context) {
  Op back("increment");
  back.attrs = context.forward().attrs;
  back.SetInput("X", context.Output("Out")).SetOutput("Out", context.Input("X"));
  back.SetAttr("step", -context.forward().Attr<float>("step", 1.0f));
  return {std::move(back)};
}

template <typename T>
void AddIncrementKernel(OpRegistry& registry) {
  registry.AddCpuKernels<T>("increment", []<typename U>(PrepareContext& context) {
    const U step = FromFloat<U>(context.Attr<float>("step"));
    const In<U> x(context, "X");
    const Out<U> out(context, "Out");
    return MakeKernel([=](const KernelContext& run) { *out(run) = WrappingAdd(*x(run), step); });
  });
}

}  // namespace

void RegisterIncrement(OpRegistry& registry) {
  OpDef def;
  def.type = "increment";
  def.doc = "Out = X + step; X has one element.";
  def.inputs = {{.name = "X", .doc = "One number."}};
  def.outputs = {{.name = "Out", .doc = "The sum, of X's shape; may be X."}};
  def.attrs = {{.name = "step",
                .type = AttrType::kFloat,
                .default_value = 1.0f,
                .doc = "The number added; truncated to an integer if X is one."}};
  def.infer = [](OpContext& context) {
    CheckOneElement(context, "X");
    context.SetOutputLike("Out", "X");
  };
  // Out may be X: of the same dtype.
  def.precision = Precision::kFollow;
  def.grad = IncrementGradient;
  def.in_place = {{"X", "Out"}};
  def.elementwise = true;
  def.counts_by = [](const Op& op) { return double{op.Attr<float>("step", 1.0f)}; };
  registry.Add(std::move(def));
  AddIncrementKernel<float>(registry);
  AddIncrementKernel<double>(registry);
  AddIncrementKernel<int32_t>(registry);
  AddIncrementKernel<int64_t>(registry);
}

}  // namespace skiff
