// rms_norm: each row divided by the root of the mean of its squares, scaled element by element. X
// counts as a matrix: the dims before begin_norm_axis are its rows.
//
//   Y = X / sqrt(mean of X² + epsilon) · Scale
//
// MeanSquare is the rows', without epsilon. Gradient, with h = 1 / sqrt(MeanSquare + epsilon) and
// g = Y@GRAD · Scale over rows of m elements:
//   Scale@GRAD = sum over rows of Y@GRAD · X · h
//   X@GRAD = h · g - X · h³ · sum (g · X) / m
//
// Source: Zhang & Sennrich, Root Mean Square Layer Normalization, 2019, as in PyTorch's rms_norm.
// (PaddlePaddle 2.6 has a fused op of this name for inference, with other slots and no gradient.)
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/cpu/wide_rows.h"
#include "operators/common/extreme_square.h"
#include "operators/common/input_checks.h"
#include "operators/nn/kernels/image_window.h"
#include "operators/nn/normalization/layer_norm_arguments.h"
#include "operators/nn/normalization/norm_arguments.h"
#include "operators/nn/normalization/row_norm.h"
#include "operators/nn/normalization/row_sums.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const NormRows rows = NormRows::Of(context);
  CheckVectors(context, {"Scale"}, rows.size, "element of a row");
  context.SetOutputLike("Y", "X");
  context.SetOutput("MeanSquare", rows.batch, context.Input("X").dtype);
}

void InferGrad(OpContext& context) {
  const NormRows rows = NormRows::Of(context);
  const TensorMeta& x = context.Input("X");
  CheckVectors(context, {"Scale"}, rows.size, "element of a row");
  CheckInputLike(context, "Y@GRAD", x.shape, x.dtype);
  CheckInputLike(context, "MeanSquare", rows.batch, x.dtype);
  context.SetOutputLike("X@GRAD", "X");
  context.SetOutput("Scale@GRAD", {rows.size}, x.dtype);
}

// What the op and its gradient do with one row: the passes of layer_norm around a mean of 0.
template <typename T>
struct RmsNormRows {
  int64_t size = 0;  // of a row
  double epsilon = 0;
  const T* scale = nullptr;  // may be nullptr

  double MeanSquareOf(const T* x) const {
    return SumOfSquares(x, size) / static_cast<double>(std::max<int64_t>(size, 1));
  }

  // Calls use(0, slope) with numbers of type T, or with doubles where T may be unable to hold the
  // square.
  template <typename Use>
  void WithSlope(double mean_square, const Use& use) const {
    const double square = mean_square + epsilon;
    const double slope = 1 / std::sqrt(square);
    if (IsExtremeSquare(square)) {
      use(0.0, slope);
    } else {
      use(T{0}, static_cast<T>(slope));
    }
  }

  // Normalizes a row and returns its mean square. y may be x.
  T Normalize(const T* x, T* y) const {
    const double mean_square = MeanSquareOf(x);
    WithSlope(mean_square, [&](auto mean, auto slope) {
      NormalizeRow<T>(x, size, mean, slope, scale, nullptr, y);
    });
    return static_cast<T>(mean_square);
  }

  // Adds to scale_sums, unless that is nullptr, what a row adds to the gradient of Scale; then
  // computes that of the row, unless dx is nullptr, which may be x or dy.
  void Differentiate(const T* x, const T* dy, T saved, T* scale_sums, T* dx) const {
    auto mean_square = static_cast<double>(saved);
    if (IsExtremeSquare(mean_square + epsilon)) mean_square = MeanSquareOf(x);
    WithSlope(mean_square, [&](auto mean, auto slope) {
      using C = decltype(mean);
      if (scale_sums != nullptr)
        AddParameterGradients<T>(x, dy, size, mean, slope, scale_sums, nullptr);
      if (dx == nullptr) return;
      const auto h = static_cast<double>(slope);
      RunGradient<C> gradient{.mean = mean, .slope = slope, .factor = C{0}, .offset = C{0}};
      if (size == 1) {
        // All but the part of epsilon cancels, and the general formula would leave rounding errors.
        gradient.slope = static_cast<C>(h * h * h * epsilon);
      } else {
        const double product = GradientSumsOf(x, dy, scale, size, mean).product;
        const auto count = static_cast<double>(std::max<int64_t>(size, 1));
        gradient.factor = static_cast<C>(h * h * h * product / count);
      }
      GradientRow(x, dy, scale, size, gradient, dx);
    });
  }
};

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  using Wide = WideType<T>;
  const NormRows prepared = NormRows::Of(context);
  const int64_t axis = context.IntAttr("begin_norm_axis");
  const double epsilon = context.Attr<float>("epsilon");
  const In<T> x(context, "X");
  const In<Wide> scale(context, "Scale");
  const Out<T> y(context, "Y");
  const Out<Wide> mean_square(context, "MeanSquare");
  const ThreadScratch<T> scratch(context, prepared.count(), /*rows=*/1, prepared.size);
  return MakeRowsKernel([=, size = prepared.size](const KernelContext& run) {
    const RmsNormRows<Wide> norm{.size = size, .epsilon = epsilon, .scale = scale(run)};
    const auto normalize = [=, x = x(run), y = y(run), squares = mean_square(run)](
                               int64_t row, const WideRows<T>& wide) {
      const int64_t at = row * size;
      Wide* to = PlaceOfRow(y, at, wide[0]);
      const Wide square = norm.Normalize(ReadRow(x, at, size, wide[0]), to);
      if (squares != nullptr) squares[row] = square;
      WriteRow(to, size, y, at);
    };
    scratch.ForEach(run, NormRows(x.shape(run), axis).count(), GrainOf(size), normalize);
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  using Wide = WideType<T>;
  const NormRows prepared = NormRows::Of(context);
  const int64_t size = prepared.size;
  const int64_t axis = context.IntAttr("begin_norm_axis");
  const double epsilon = context.Attr<float>("epsilon");
  const In<T> x(context, "X");
  const In<Wide> scale(context, "Scale");
  const In<Wide> mean_square(context, "MeanSquare");
  const In<T> y_gradient(context, "Y@GRAD");
  const Out<T> x_gradient(context, "X@GRAD");
  const Out<Wide> scale_gradient(context, "Scale@GRAD");
  const int memory = scale_gradient.is_there()
                         ? context.RequestWorkspace(
                               RowSums(prepared.count(), size, /*arrays=*/1).template bytes<T>())
                         : -1;
  const ThreadScratch<T> scratch(context, prepared.count(), /*rows=*/2, size);
  return MakeRowsKernel([=](const KernelContext& run) {
    const int64_t rows = NormRows(x.shape(run), axis).count();
    const RmsNormRows<Wide> norm{.size = size, .epsilon = epsilon, .scale = scale(run)};
    const auto add_row = [=, x = x(run), dy = y_gradient(run), dx = x_gradient(run),
                          squares = mean_square(run)](int64_t row, Wide* sums,
                                                      const WideRows<T>& wide) {
      const int64_t at = row * size;
      const Wide* from = ReadRow(x, at, size, wide[0]);
      const Wide* gradient = ReadRow(dy, at, size, wide[1]);
      Wide* to = PlaceOfRow(dx, at, wide[0]);
      norm.Differentiate(from, gradient, squares[row], sums, to);
      WriteRow(to, size, dx, at);
    };
    if (!scale_gradient.is_there()) {
      scratch.ForEach(run, rows, GrainOf(size),
                      [&](int64_t row, const WideRows<T>& wide) { add_row(row, nullptr, wide); });
      return;
    }
    const RowSums gradients(rows, size, /*arrays=*/1);
    gradients.AddRows(run, scratch, run.workspace(memory), add_row);
    gradients.Write(run.workspace(memory), 0, scale_gradient(run));
  });
}

OpDef RmsNormDef() {
  OpDef def;
  def.type = "rms_norm";
  def.doc =
      "Y = X / sqrt(mean of X * X + epsilon) * Scale, with the mean of each row, the dims from "
      "begin_norm_axis on.";
  def.inputs = {{.name = "X", .doc = "Of rank 2 or more."},
                {.name = "Scale",
                 .doc = "[elements of a row]; 1 if absent.",
                 .dispensable = true,
                 .keeps_float32 = true}};
  def.outputs = {{.name = "Y", .doc = "Like X."},
                 {.name = "MeanSquare",
                  .doc = "Of the rows; the dims of X before begin_norm_axis.",
                  .dispensable = true,
                  .intermediate = true,
                  .keeps_float32 = true}};
  def.attrs = {EpsilonAttr(), BeginNormAxisAttr()};
  def.attrs[0].doc = "Added to the mean of the squares.";
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.in_place = {{"X", "Y"}};
  return def;
}

OpDef RmsNormGradDef(OpDef* forward) {
  OpDef def = GradientOf(forward, {"X", "Scale", "MeanSquare", "Y@GRAD"}, {"X@GRAD", "Scale@GRAD"});
  def.doc =
      "With h = 1 / sqrt(MeanSquare + epsilon), g = Y@GRAD * Scale and rows of m elements: X@GRAD "
      "= h * g - X * h^3 * sum(g * X) / m; Scale@GRAD = the sum of Y@GRAD * X * h over rows.";
  def.infer = InferGrad;
  def.in_place = {{"Y@GRAD", "X@GRAD"}};
  return def;
}

}  // namespace

void RegisterRmsNorm(OpRegistry& registry) {
  OpDef def = RmsNormDef();
  registry.Add(RmsNormGradDef(&def));
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, Float16, BFloat16>(
      "rms_norm", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double, Float16, BFloat16>(
      "rms_norm_grad", []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
