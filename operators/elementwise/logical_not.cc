// logical_not: Out = not X. Source: Fluid's logical_not.
#include <utility>

#include "operators/elementwise/kernels/unary.h"

namespace skiff {
namespace {

template <typename T>
void AddNotKernel(OpRegistry& registry) {
  registry.AddCpuKernels<T>("logical_not", []<typename U>(PrepareContext& context) {
    const In<U> x(context, "X");
    const Out<bool> out(context, "Out");
    return MakeRowsKernel([=](const KernelContext& run) {
      const U* from = x(run);
      bool* to = out(run);
      ParallelFor(x.count(run), kVectorGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = from[i] == U{0};
      });
    });
  });
}

}  // namespace

void RegisterLogicalNot(OpRegistry& registry) {
  OpDef def;
  def.type = "logical_not";
  def.doc = "Out = not X; a number is true unless it is 0.";
  def.inputs = {{.name = "X", .doc = "Any tensor."}};
  def.outputs = {{.name = "Out", .doc = "Bools, of X's shape."}};
  def.infer = [](OpContext& context) {
    context.SetOutputLike("Out", "X");
    context.SetOutput("Out", context.Input("X").shape, DType::kBool);
  };
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "a bool has no gradient";
  def.elementwise = true;
  registry.Add(std::move(def));
  AddNotKernel<bool>(registry);
  AddNotKernel<uint8_t>(registry);
  AddNotKernel<int32_t>(registry);
  AddNotKernel<int64_t>(registry);
  AddNotKernel<float>(registry);
  AddNotKernel<double>(registry);
}

}  // namespace skiff
