// layer_norm: each row with mean 0 and variance 1, scaled and shifted element by element. X counts
// as a matrix: the dims before begin_norm_axis are its rows.
//
//   Y = (X - mean) / sqrt(variance + epsilon) · Scale + Bias
//
// Mean and Variance (biased, without epsilon) are the rows'. Gradient, with h = 1 / sqrt(variance +
// epsilon), z = (X - mean) · h and g = Y@GRAD · Scale over rows of m elements:
//   Bias@GRAD = sum over rows of Y@GRAD,  Scale@GRAD = sum over rows of Y@GRAD · z
//   X@GRAD = h · (g - sum g / m - z · sum (g · z) / m)
//
// Source: Ba, Kiros & Hinton 2016; Fluid's layer_norm (PaddlePaddle 2.6).
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/wide_rows.h"
#include "operators/common/input_checks.h"
#include "operators/nn/kernels/image_window.h"
#include "operators/nn/normalization/layer_norm_arguments.h"
#include "operators/nn/normalization/layer_norm_rows.h"
#include "operators/nn/normalization/norm_arguments.h"
#include "operators/nn/normalization/row_sums.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const NormRows rows = NormRows::Of(context);
  CheckVectors(context, {"Scale", "Bias"}, rows.size, "element of a row");
  context.SetOutputLike("Y", "X");
  InferRowStatistics(context, rows, context.Input("X").dtype);
}

void InferGrad(OpContext& context) {
  const NormRows rows = NormRows::Of(context);
  const TensorMeta& x = context.Input("X");
  CheckVectors(context, {"Scale", "Bias"}, rows.size, "element of a row");
  CheckInputLike(context, "Y@GRAD", x.shape, x.dtype);
  CheckRowStatistics(context, rows, x.dtype);
  context.SetOutputLike("X@GRAD", "X");
  for (const char* slot : {"Scale@GRAD", "Bias@GRAD"}) {
    context.SetOutput(slot, {rows.size}, x.dtype);
  }
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const int64_t size = NormRows::Of(context).size;
  const int64_t axis = context.IntAttr("begin_norm_axis");
  const auto arguments = LayerNormArguments<WideType<T>>(context, size, "Scale", "Bias");
  const In<T> x(context, "X");
  const Out<T> y(context, "Y");
  const ThreadScratch<T> scratch(context, NormRows::Of(context).count(), /*rows=*/1, size);
  return MakeRowsKernel([=](const KernelContext& run) {
    const auto normalize = [=, norm = arguments(run), x = x(run), y = y(run)](
                               int64_t row, const WideRows<T>& wide) {
      const int64_t at = row * size;
      WideType<T>* to = PlaceOfRow(y, at, wide[0]);
      norm.Normalize(row, ReadRow(x, at, size, wide[0]), to);
      WriteRow(to, size, y, at);
    };
    scratch.ForEach(run, NormRows(x.shape(run), axis).count(), GrainOf(size), normalize);
  });
}

// How many sums over rows the gradient op computes for each element of a row.
constexpr int kArrays = 2;

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const int64_t size = NormRows::Of(context).size;
  const int64_t axis = context.IntAttr("begin_norm_axis");
  using Wide = WideType<T>;
  const auto arguments = LayerNormGradArguments<Wide>(context, size, "Scale");
  const In<T> x(context, "X");
  const In<T> y_gradient(context, "Y@GRAD");
  const Out<T> x_gradient(context, "X@GRAD");
  const Out<Wide> scale_gradient(context, "Scale@GRAD");
  const Out<Wide> bias_gradient(context, "Bias@GRAD");
  const bool wants_parameters = scale_gradient.is_there() || bias_gradient.is_there();
  const int memory = wants_parameters
                         ? context.RequestWorkspace(
                               RowSums(NormRows::Of(context).count(), size, kArrays).bytes<T>())
                         : -1;
  const ThreadScratch<T> scratch(context, NormRows::Of(context).count(), /*rows=*/2, size);
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t rows = NormRows(x.shape(run), axis).count();
    const auto add_row = [&, norm = arguments(run), x = x(run), dy = y_gradient(run),
                          dx = x_gradient(run)](int64_t row, Wide* sums, const WideRows<T>& wide) {
      const int64_t at = row * size;
      const Wide* from = ReadRow(x, at, size, wide[0]);
      const Wide* gradient = ReadRow(dy, at, size, wide[1]);
      // Before X@GRAD, which may take the place of Y@GRAD.
      if (sums != nullptr) norm.AddParameters(row, from, gradient, sums, sums + size);
      Wide* to = PlaceOfRow(dx, at, wide[0]);
      if (to != nullptr) norm.Input(row, from, gradient, to);
      WriteRow(to, size, dx, at);
    };
    if (!wants_parameters) {
      scratch.ForEach(run, rows, GrainOf(size),
                      [&](int64_t row, const WideRows<T>& wide) { add_row(row, nullptr, wide); });
      return;
    }
    const RowSums gradients(rows, size, kArrays);
    gradients.AddRows(run, scratch, run.workspace(memory), add_row);
    gradients.Write(run.workspace(memory), 0, scale_gradient(run));
    gradients.Write(run.workspace(memory), 1, bias_gradient(run));
  });
}

OpDef LayerNormDef() {
  OpDef def;
  def.type = "layer_norm";
  def.doc =
      "Y = (X - mean) / sqrt(variance + epsilon) * Scale + Bias, with mean and variance of each "
      "row, the dims from begin_norm_axis on.";
  def.inputs = {{.name = "X", .doc = "Of rank 2 or more."},
                {.name = "Scale",
                 .doc = "[elements of a row]; 1 if absent.",
                 .dispensable = true,
                 .keeps_float32 = true},
                {.name = "Bias",
                 .doc = "[elements of a row]; 0 if absent.",
                 .dispensable = true,
                 .keeps_float32 = true}};
  def.outputs = RowStatisticSlots("the dims of X before begin_norm_axis");
  def.outputs.insert(def.outputs.begin(), {.name = "Y", .doc = "Like X."});
  def.attrs = {EpsilonAttr(), BeginNormAxisAttr()};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.in_place = {{"X", "Y"}};
  return def;
}

OpDef LayerNormGradDef(OpDef* forward) {
  OpDef def = GradientOf(forward, {"X", "Scale", ForShape("Bias"), "Mean", "Variance", "Y@GRAD"},
                         {"X@GRAD", "Scale@GRAD", "Bias@GRAD"});
  def.doc =
      "With h = 1 / sqrt(Variance + epsilon), z = (X - Mean) * h, g = Y@GRAD * Scale and rows of m "
      "elements: X@GRAD = h * (g - sum g / m - z * sum(g * z) / m); Scale@GRAD = the sum of Y@GRAD "
      "* z and Bias@GRAD that of Y@GRAD over rows.";
  def.infer = InferGrad;
  def.in_place = {{"Y@GRAD", "X@GRAD"}};
  return def;
}

}  // namespace

void RegisterLayerNorm(OpRegistry& registry) {
  OpDef def = LayerNormDef();
  registry.Add(LayerNormGradDef(&def));
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, Float16, BFloat16>(
      "layer_norm", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double, Float16, BFloat16>(
      "layer_norm_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
