// squared_l2_norm: Out = the sum of x² over all elements of X, of shape [1].
// Source: Fluid's squared_l2_norm; dX = 2 * X * dOut. For selected rows, it is the norm of the
// dense tensor that they represent (in Fluid, merge_selected_rows comes before it). The wide sum,
// which clips of gradients take, has no gradient.
#include <vector>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/infer_outputs.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/merged_rows.h"
#include "operators/common/wide_float32.h"

namespace skiff {
namespace {

constexpr int64_t kGrain = 16384;

void Infer(OpContext& context) {
  context.SetOutput("Out", Shape{1}, SumDType(context, context.Input("X").dtype));
}

void InferGrad(OpContext& context) {
  CheckGradient(context, "Out@GRAD", 0, {.shape = {1}, .dtype = context.Input("X").dtype});
  context.SetOutputLike("X@GRAD", "X");
}

std::vector<Op> Gradient(const GradContext& context) {
  static const auto& rule =
      *new GradRule(GradOp("squared_l2_norm_grad", {"X", "Out@GRAD"}, {"X@GRAD"}));
  SKIFF_ENFORCE(!context.forward().Attr<bool>("wide_float32", false), kUnimplemented,
                "squared_l2_norm: wide_float32 = true has no gradient, expected false");
  return rule(context);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const In<T> x(context, "X");
  const Out<> out(context, "Out");
  const bool is_wide = IsWideFloat32(context);
  return MakeRowsKernel([=](const KernelContext& run) {
    StoreSum(SumOfSquares(x(run), x.count(run)), &out.tensor(run), is_wide);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareRows(PrepareContext& context) {
  // Repeated rows are added before they are squared: (a + b)² isn't a² + b².
  return MakeRowsKernel([sum = MergedSquares<T>(context), is_wide = IsWideFloat32(context),
                         x = In<>(context, "X"),
                         out = Out<>(context, "Out")](const KernelContext& run) {
    StoreSum(sum.Of(run, x.tensor(run)), &out.tensor(run), is_wide);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const In<T> x(context, "X");
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  return MakeRowsKernel([=](const KernelContext& run) {
    const T factor = 2 * *gradient(run);
    ParallelFor(x.count(run), kGrain, [=, from = x(run), to = dx(run)](int64_t begin, int64_t end) {
      ScaleArray(from + begin, factor, to + begin, end - begin);
    });
  });
}

}  // namespace

void RegisterSquaredL2Norm(OpRegistry& registry) {
  registry.Add({.type = "squared_l2_norm",
                .doc = "Out = the sum of the squares of all elements of X. Fluid's "
                       "squared_l2_norm.",
                .inputs = {{.name = "X", .doc = "Of any shape.", .selected_rows = true}},
                .outputs = {{.name = "Out", .doc = "The sum, of shape [1]."}},
                .attrs = {WideFloat32Attr()},
                .infer = Infer,
                .grad = Gradient,
                .precision = Precision::kHigh});
  registry.Add({.type = "squared_l2_norm_grad",
                .doc = "The gradient of squared_l2_norm: dX = 2 * X * dOut.",
                .inputs = {{.name = "X", .doc = "The input of squared_l2_norm."},
                           {.name = "Out@GRAD", .doc = "The gradient of Out, one element."}},
                .outputs = {{.name = "X@GRAD", .doc = "Of X's shape."}},
                .infer = InferGrad,
                .no_gradient_reason = "second derivatives are not provided",
                .in_place = {{"X", "X@GRAD"}},
                .precision = Precision::kHigh});
  registry.AddCpuKernels<float, double>(
      "squared_l2_norm", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddSelectedRowsKernels<float, double>(
      "squared_l2_norm",
      []<typename T>(PrepareContext& context) { return PrepareRows<T>(context); });
  registry.AddCpuKernels<float, double>(
      "squared_l2_norm_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
