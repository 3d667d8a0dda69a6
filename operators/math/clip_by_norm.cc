// clip_by_norm: Out = X if its L2 norm is at most max_norm, else X * max_norm / norm.
// Source: Fluid's clip_by_norm, which is applied to gradients and has no gradient itself. The norm
// of selected rows is that of the dense tensor that they represent; Out has the same rows,
// including repeated ones.
#include <cmath>

#include "framework/base/parallel.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/merged_rows.h"
#include "operators/common/selected_rows.h"

namespace skiff {
namespace {

constexpr int64_t kGrain = 16384;

void Infer(OpContext& context) { context.SetOutputLike("Out", "X"); }

// Returns the factor for the values of a tensor with this sum of squares.
template <typename T>
T Factor(double sum_of_squares, double max_norm) {
  const double norm = std::sqrt(sum_of_squares);
  return norm > max_norm ? static_cast<T>(max_norm / norm) : T{1};
}

template <typename T>
void Scale(const Tensor& x, T factor, Tensor* out) {
  const T* from = x.data<T>();
  T* to = out->data<T>();
  ParallelFor(x.element_count(), kGrain, [=](int64_t begin, int64_t end) {
    ScaleArray(from + begin, factor, to + begin, end - begin);
  });
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const double max_norm = static_cast<double>(context.Attr<float>("max_norm"));
  return MakeRowsKernel(
      [=, x = In<>(context, "X"), out = Out<>(context, "Out")](const KernelContext& run) {
        const Tensor& from = x.tensor(run);
        const double squares = SumOfSquares(from.data<T>(), from.element_count());
        Scale(from, Factor<T>(squares, max_norm), &out.tensor(run));
      });
}

template <typename T>
std::unique_ptr<Kernel> PrepareRows(PrepareContext& context) {
  const double max_norm = static_cast<double>(context.Attr<float>("max_norm"));
  return MakeRowsKernel([=, squares = MergedSquares<T>(context), x = In<>(context, "X"),
                         out = Out<>(context, "Out")](const KernelContext& run) {
    const Tensor& rows = x.tensor(run);
    Scale(rows, Factor<T>(squares.Of(run, rows), max_norm), &out.tensor(run));
    CopyRowNumbers(rows, &out.tensor(run));
  });
}

}  // namespace

void RegisterClipByNorm(OpRegistry& registry) {
  registry.Add(
      {.type = "clip_by_norm",
       .doc = "Out = X * min(1, max_norm / L2 norm of X). Fluid's clip_by_norm.",
       .inputs = {{.name = "X", .doc = "Of any shape.", .selected_rows = true}},
       .outputs = {{.name = "Out", .doc = "Of X's shape.", .selected_rows = true}},
       .attrs = {{.name = "max_norm",
                  .type = AttrType::kFloat,
                  .default_value = {},
                  .doc = "The largest norm of Out, above 0.",
                  .accepts = [](const Attribute& value) { return std::get<float>(value) > 0; },
                  .expected = "more than 0"}},
       .infer = Infer,
       .no_gradient_reason = "Fluid has none: it clips gradients, after the backward pass",
       .in_place = {{"X", "Out"}},
       .precision = Precision::kHigh});
  registry.AddCpuKernels<float, double>(
      "clip_by_norm", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddSelectedRowsKernels<float, double>(
      "clip_by_norm", []<typename T>(PrepareContext& context) { return PrepareRows<T>(context); });
}

}  // namespace skiff
