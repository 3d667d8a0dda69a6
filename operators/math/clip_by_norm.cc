// clip_by_norm: Out = X if its L2 norm is at most max_norm, else X * max_norm / norm.
// Source: Fluid's clip_by_norm, which is applied to gradients and has none itself.
#include <cmath>

#include "framework/base/parallel.h"
#include "framework/op/registry.h"
#include "operators/common/reduce.h"

namespace skiff {
namespace {

constexpr int64_t kGrain = 16384;

void Infer(OpContext& context) { context.SetOutputLike("Out", "X"); }

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const int x = context.InputIndex("X");
  const int out = context.OutputIndex("Out");
  const int64_t count = context.Input("X").shape.element_count();
  const double max_norm = static_cast<double>(context.Attr<float>("max_norm"));
  return MakeKernel([=](const KernelContext& run) {
    const T* from = run.input(x).data<T>();
    T* to = run.output(out).data<T>();
    const double norm = std::sqrt(SumOfSquares(from, count));
    const T factor = norm > max_norm ? static_cast<T>(max_norm / norm) : T{1};
    ParallelFor(count, kGrain, [=](int64_t begin, int64_t end) {
      ScaleArray(from + begin, factor, to + begin, end - begin);
    });
  });
}

}  // namespace

void RegisterClipByNorm(OpRegistry& registry) {
  registry.Add(
      {.type = "clip_by_norm",
       .doc = "Out = X * min(1, max_norm / L2 norm of X). Fluid's clip_by_norm.",
       .inputs = {{.name = "X", .doc = "Of any shape."}},
       .outputs = {{.name = "Out", .doc = "Of X's shape."}},
       .attrs = {{.name = "max_norm",
                  .type = AttrType::kFloat,
                  .default_value = {},
                  .doc = "The largest norm of Out, above 0.",
                  .accepts = [](const Attribute& value) { return std::get<float>(value) > 0; },
                  .expected = "more than 0"}},
       .infer = Infer,
       .no_gradient_reason = "Fluid has none: it clips gradients, after the backward pass",
       .in_place = {{"X", "Out"}}});
  registry.AddCpuKernels<float, double>(
      "clip_by_norm", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
