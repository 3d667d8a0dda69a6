// bias_dropout_residual_layer_norm: what stands between two sub-layers of a transformer, as one op.
//
//   Sum = Residual + dropout(X + Bias)
//   Y = layer_norm(Sum), each row of the last dim with mean 0 and variance 1
//
// The same numbers come out as of elementwise_add, dropout, elementwise_add and layer_norm; the
// same elements are dropped as by a dropout of the same op id. The pass fuse_residual_layer_norm
// makes this op. PaddlePaddle's fused_bias_dropout_residual_layer_norm is the like of it, with
// other names of some slots and attributes.
//
// Gradient: Residual@GRAD is that of layer_norm, plus Sum@GRAD if others than layer_norm read Sum,
// as in a transformer that normalizes first. X@GRAD = Mask ? Residual@GRAD * scale : 0, and
// Bias@GRAD is its sum over rows. The gradient op reads Sum rather than Y, which can't tell the
// normalized row where LnScale is 0, and Mask, whose bytes are read sooner than drawn again.
#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/cpu/wide_rows.h"
#include "operators/common/dropout_settings.h"
#include "operators/common/input_checks.h"
#include "operators/nn/kernels/image_window.h"
#include "operators/nn/normalization/dropout_rows.h"
#include "operators/nn/normalization/layer_norm_arguments.h"
#include "operators/nn/normalization/layer_norm_rows.h"
#include "operators/nn/normalization/norm_arguments.h"
#include "operators/nn/normalization/row_sums.h"

namespace skiff {
namespace {

NormRows RowsOf(const Shape& shape) { return NormRows(shape, shape.rank() - 1); }

// The rows of X, or in the gradient op of Sum.
NormRows RowsOf(const OpContext& context, const char* slot) {
  const Shape& x = context.Input(slot).shape;
  SKIFF_ENFORCE(x.rank() >= 2, kInvalidArgument, context.op().type, ": ", slot, " of shape ", x,
                ", expected rank 2 or more");
  return RowsOf(x);
}

void Infer(OpContext& context) {
  const NormRows rows = RowsOf(context, "X");
  const TensorMeta& x = context.Input("X");
  CheckVectors(context, {"Bias", "LnScale", "LnBias"}, rows.size, "element of a row");
  if (context.HasInput("Residual")) CheckInputLike(context, "Residual", x.shape, x.dtype);
  context.SetOutputLike("Y", "X");
  context.SetOutputLike("Sum", "X");
  context.SetOutput("Mask", x.shape, DType::kUint8);
  InferRowStatistics(context, rows, x.dtype);
}

void InferGrad(OpContext& context) {
  const NormRows rows = RowsOf(context, "Sum");
  const TensorMeta& sum = context.Input("Sum");
  CheckVectors(context, {"Bias", "LnScale", "LnBias"}, rows.size, "element of a row");
  CheckInputLike(context, "Y@GRAD", sum.shape, sum.dtype);
  if (context.HasInput("Sum@GRAD")) CheckInputLike(context, "Sum@GRAD", sum.shape, sum.dtype);
  if (context.HasInput("Mask")) CheckInputLike(context, "Mask", sum.shape, DType::kUint8);
  CheckRowStatistics(context, rows, sum.dtype);
  for (const char* slot : {"X@GRAD", "Residual@GRAD"}) context.SetOutputLike(slot, "Sum");
  for (const char* slot : {"Bias@GRAD", "LnScale@GRAD", "LnBias@GRAD"}) {
    context.SetOutput(slot, {rows.size}, sum.dtype);
  }
}

template <typename T>
std::unique_ptr<Kernel> PrepareSumNorm(PrepareContext& context) {
  using Wide = WideType<T>;
  const NormRows prepared = RowsOf(context, "X");
  const DropoutSettings settings = DropoutSettingsOf(context);
  const auto arguments = LayerNormArguments<Wide>(context, prepared.size, "LnScale", "LnBias");
  const In<T> x(context, "X");
  const WideInput<T> bias(context, "Bias");
  const In<T> residual(context, "Residual");
  const Out<T> y(context, "Y");
  const Out<T> sums(context, "Sum");
  const Out<uint8_t> mask(context, "Mask");
  const ThreadScratch<T> scratch(context, prepared.count(), /*rows=*/2, prepared.size);
  return MakeRowsKernel([=](const KernelContext& run) {
    const NormRows rows = RowsOf(x.shape(run));
    const LayerNormRows<Wide> norm = arguments(run);
    const ElementDropout dropout{.draws = settings.draws(),
                                 .drops_all = settings.drops_all(),
                                 .key = settings.KeyOf(run),
                                 .threshold = settings.threshold(),
                                 .scale = settings.scale()};
    // A sum that nobody reads lies for a while where its row of Y will.
    T* place_of_sums = sums.is_there() ? sums(run) : y(run);
    const auto normalize = [&, x = x(run), bias = bias(run), residual = residual(run),
                            sums = sums(run), y = y(run),
                            mask = mask(run)](int64_t row, const WideRows<T>& wide) {
      const int64_t at = row * rows.size;
      const RowTerms<Wide> terms{.x = ReadRow(x, at, rows.size, wide[0]),
                                 .bias = bias,
                                 .residual = ReadRow(residual, at, rows.size, wide[1]),
                                 .first = at,
                                 .count = rows.size};
      Wide* sum = PlaceOfRow(place_of_sums, at, wide[0]);
      AddDroppedRow(terms, dropout, sum, mask == nullptr ? nullptr : mask + at);
      WriteRow(sum, rows.size, sums, at);
      Wide* normal = PlaceOfRow(y, at, wide[0]);
      norm.Normalize(row, sum, normal);
      WriteRow(normal, rows.size, y, at);
    };
    scratch.ForEach(run, rows.count(), GrainOf(rows.size), normalize);
  });
}

// How many sums over rows the gradient op computes for each element of a row.
constexpr int kArrays = 3;

template <typename T>
std::unique_ptr<Kernel> PrepareSumNormGrad(PrepareContext& context) {
  using Wide = WideType<T>;
  const NormRows prepared = RowsOf(context, "Sum");
  const DropoutSettings dropout = DropoutSettingsOf(context);
  const auto arguments = LayerNormGradArguments<Wide>(context, prepared.size, "LnScale");
  const In<T> sum(context, "Sum");
  const bool reads_mask = dropout.draws() || dropout.drops_all();
  const In<uint8_t> mask(context, "Mask");
  const In<T> y_gradient(context, "Y@GRAD");
  const In<T> sum_gradient(context, "Sum@GRAD");
  const Out<T> x_gradient(context, "X@GRAD");
  const Out<T> bias_gradient(context, "Bias@GRAD");
  const Out<T> residual_gradient(context, "Residual@GRAD");
  const Out<Wide> scale_gradient(context, "LnScale@GRAD");
  const Out<Wide> shift_gradient(context, "LnBias@GRAD");
  int unwanted = -1;  // the gradient of Sum, if only Bias@GRAD needs it
  SKIFF_ENFORCE(mask.is_there() || !reads_mask, kInvalidArgument, context.op().type,
                ": Mask is missing, expected that of the forward op");
  const int memory =
      context.RequestWorkspace(RowSums(prepared.count(), prepared.size, kArrays).bytes<T>());
  if (!x_gradient.is_there() && !residual_gradient.is_there() && bias_gradient.is_there()) {
    unwanted = context.RequestWorkspace(
        ByteCount(context.Input("Sum").shape.element_count(), kDTypeOf<T>));
  }
  const ThreadScratch<T> scratch(context, prepared.count(), /*rows=*/2, prepared.size);
  return MakeRowsKernel([=](const KernelContext& run) {
    const NormRows rows = RowsOf(sum.shape(run));
    const LayerNormGradRows<Wide> norm = arguments(run);
    T* dx = x_gradient(run);
    // Where the gradient of Sum goes, which may have to make way for X@GRAD; nullptr if nobody
    // wants what follows from it.
    T* ds = residual_gradient.is_there() ? residual_gradient(run)
            : unwanted < 0               ? dx
                                         : static_cast<T*>(run.workspace(unwanted));
    const int64_t size = rows.size;
    const RowSums gradients(rows.count(), size, kArrays);
    const auto add_row = [&, sum = sum(run), dy = y_gradient(run), more = sum_gradient(run),
                          mask = reads_mask ? mask(run) : nullptr](int64_t row, Wide* sums,
                                                                   const WideRows<T>& wide) {
      const int64_t at = row * size;
      const Wide* from = ReadRow(sum, at, size, wide[0]);
      const Wide* gradient = ReadRow(dy, at, size, wide[1]);
      // Before the other gradients, which may take the place of Y@GRAD.
      norm.AddParameters(row, from, gradient, sums, sums + size);
      if (ds == nullptr) return;
      Wide* of_sum = PlaceOfRow(ds, at, wide[1]);
      norm.Input(row, from, gradient, of_sum);
      if (more != nullptr) AddArrays(of_sum, ReadRow(more, at, size, wide[0]), of_sum, size);
      WriteRow(of_sum, size, ds, at);
      Wide* of_x = PlaceOfRow(dx, at, wide[0]);
      DropGradientRow(mask == nullptr ? nullptr : mask + at, static_cast<Wide>(dropout.scale()),
                      of_sum, size, of_x, bias_gradient.is_there() ? sums + 2 * size : nullptr);
      WriteRow(of_x, size, dx, at);
    };
    gradients.AddRows(run, scratch, run.workspace(memory), add_row);
    gradients.Write(run.workspace(memory), 0, scale_gradient(run));
    gradients.Write(run.workspace(memory), 1, shift_gradient(run));
    gradients.Write(run.workspace(memory), 2, bias_gradient(run));
  });
}

std::vector<AttrDef> Attributes() {
  std::vector<AttrDef> attrs = DropoutAttrs(/*default_probability=*/0.0f);
  attrs.push_back(EpsilonAttr());
  return attrs;
}

OpDef ForwardDef() {
  OpDef def;
  def.type = "bias_dropout_residual_layer_norm";
  def.doc =
      "Sum = Residual + dropout(X + Bias); Y = (Sum - mean) / sqrt(variance + epsilon) * LnScale + "
      "LnBias, with mean and variance of each row, the last dim.";
  def.inputs = {{.name = "X", .doc = "Of rank 2 or more."},
                {.name = "Bias", .doc = "[elements of a row]; 0 if absent.", .dispensable = true},
                {.name = "Residual", .doc = "Like X; 0 if absent.", .dispensable = true},
                {.name = "LnScale",
                 .doc = "[elements of a row]; 1 if absent.",
                 .dispensable = true,
                 .keeps_float32 = true},
                {.name = "LnBias",
                 .doc = "[elements of a row]; 0 if absent.",
                 .dispensable = true,
                 .keeps_float32 = true}};
  def.outputs = {{.name = "Y", .doc = "Like X."},
                 {.name = "Sum", .doc = "What is normalized, like X.", .dispensable = true},
                 {.name = "Mask",
                  .doc = "uint8: 1 where X was kept, 0 where it was dropped.",
                  .dispensable = true,
                  .intermediate = true}};
  std::ranges::copy(RowStatisticSlots("the dims of X but the last"),
                    std::back_inserter(def.outputs));
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.in_place = {{"X", "Sum"}, {"X", "Y"}, {"Residual", "Sum"}, {"Residual", "Y"}};
  def.random = true;
  return def;
}

OpDef GradDef(OpDef* forward) {
  OpDef def = GradientOf(forward,
                         {"Sum", Optional("Mask"), ForShape("Bias"), "LnScale", ForShape("LnBias"),
                          "Mean", "Variance", "Y@GRAD", "Sum@GRAD"},
                         {"X@GRAD", "Bias@GRAD", "Residual@GRAD", "LnScale@GRAD", "LnBias@GRAD"});
  def.doc =
      "Residual@GRAD = the gradient of layer_norm + Sum@GRAD; X@GRAD = Mask ? Residual@GRAD * "
      "scale of dropout : 0; Bias@GRAD = the sum of X@GRAD over rows. LnScale@GRAD and "
      "LnBias@GRAD are those of layer_norm.";
  def.infer = InferGrad;
  def.in_place = {{"Y@GRAD", "Residual@GRAD"}, {"Y@GRAD", "X@GRAD"}};
  return def;
}

}  // namespace

void RegisterBiasDropoutResidualLayerNorm(OpRegistry& registry) {
  OpDef def = ForwardDef();
  registry.Add(GradDef(&def));
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, Float16, BFloat16>(
      "bias_dropout_residual_layer_norm",
      []<typename T>(PrepareContext& context) { return PrepareSumNorm<T>(context); });
  registry.AddCpuKernels<float, double, Float16, BFloat16>(
      "bias_dropout_residual_layer_norm_grad",
      []<typename T>(PrepareContext& context) { return PrepareSumNormGrad<T>(context); });
}

}  // namespace skiff
