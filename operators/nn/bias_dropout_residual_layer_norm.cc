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
#include "operators/common/array_reduction.h"
#include "operators/common/dropout_settings.h"
#include "operators/common/input_checks.h"
#include "operators/nn/kernels/dropout_rows.h"
#include "operators/nn/kernels/image_window.h"
#include "operators/nn/kernels/layer_norm_arguments.h"
#include "operators/nn/kernels/layer_norm_rows.h"
#include "operators/nn/kernels/norm_arguments.h"
#include "operators/nn/kernels/row_sums.h"

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
class SumNormKernel final : public Kernel {
 public:
  explicit SumNormKernel(PrepareContext& context)
      : rows_(RowsOf(context, "X")),
        dropout_(DropoutSettingsOf(context)),
        arguments_(context, rows_.size, "LnScale", "LnBias"),
        x_(context.InputIndex("X")),
        bias_(context.InputIndex("Bias")),
        residual_(context.InputIndex("Residual")),
        y_(context.OutputIndex("Y")),
        sum_(context.OutputIndex("Sum")),
        mask_(context.OutputIndex("Mask")) {}

  bool TakesFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    rows_ = RowsOf(run.input(x_).shape());
    const RowTerms<T> all{.x = run.input(x_).template data<T>(),
                          .bias = InputData<T>(run, bias_),
                          .residual = InputData<T>(run, residual_),
                          .count = rows_.size};
    const LayerNormRows<T> norm = arguments_.Of<T>(run);
    const ElementDropout dropout = DropoutOf(run);
    T* y = run.output(y_).template data<T>();
    // A sum that nobody reads lies for a while where its row of Y will.
    T* sums = sum_ < 0 ? y : run.output(sum_).template data<T>();
    uint8_t* mask = OutputData<uint8_t>(run, mask_);
    ParallelFor(rows_.count(), GrainOf(rows_.size), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        RowTerms<T> terms = all;
        terms.first = row * rows_.size;
        terms.x += terms.first;
        if (terms.residual != nullptr) terms.residual += terms.first;
        T* sum = sums + terms.first;
        AddDroppedRow(terms, dropout, sum, mask == nullptr ? nullptr : mask + terms.first);
        norm.Normalize(row, sum, y + terms.first);
      }
    });
  }

 private:
  ElementDropout DropoutOf(const KernelContext& run) const {
    return {.draws = dropout_.draws(),
            .drops_all = dropout_.drops_all(),
            .key = dropout_.KeyOf(run),
            .threshold = dropout_.threshold(),
            .scale = dropout_.scale()};
  }

  NormRows rows_;
  DropoutSettings dropout_;
  LayerNormArguments arguments_;
  int x_;
  int bias_;
  int residual_;
  int y_;
  int sum_;
  int mask_;
};

template <typename T>
class SumNormGradKernel final : public Kernel {
 public:
  explicit SumNormGradKernel(PrepareContext& context)
      : rows_(RowsOf(context, "Sum")),
        dropout_(DropoutSettingsOf(context)),
        arguments_(context, rows_.size, "LnScale"),
        sum_(context.InputIndex("Sum")),
        mask_(context.InputIndex("Mask")),
        y_gradient_(context.InputIndex("Y@GRAD")),
        more_(context.InputIndex("Sum@GRAD")),
        x_gradient_(context.OutputIndex("X@GRAD")),
        bias_gradient_(context.OutputIndex("Bias@GRAD")),
        residual_gradient_(context.OutputIndex("Residual@GRAD")),
        scale_gradient_(context.OutputIndex("LnScale@GRAD")),
        shift_gradient_(context.OutputIndex("LnBias@GRAD")) {
    const bool reads_mask = dropout_.draws() || dropout_.drops_all();
    SKIFF_ENFORCE(mask_ >= 0 || !reads_mask, kInvalidArgument, context.op().type,
                  ": Mask is missing, expected that of the forward op");
    if (!reads_mask) mask_ = -1;
    memory_ = context.RequestWorkspace(Sums().template bytes<T>());
    if (x_gradient_ < 0 && residual_gradient_ < 0 && bias_gradient_ >= 0) {
      unwanted_ = context.RequestWorkspace(
          ByteCount(context.Input("Sum").shape.element_count(), kDTypeOf<T>));
    }
  }

  bool TakesFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    rows_ = RowsOf(run.input(sum_).shape());
    const LayerNormGradRows<T> norm = arguments_.Of<T>(run);
    const T* sum = run.input(sum_).template data<T>();
    const T* dy = run.input(y_gradient_).template data<T>();
    const T* more = InputData<T>(run, more_);
    const uint8_t* mask = InputData<uint8_t>(run, mask_);
    T* dx = OutputData<T>(run, x_gradient_);
    T* ds = SumGradient(run, dx);
    void* memory = run.workspace(memory_);
    const int64_t size = rows_.size;
    const RowSums gradients = Sums();
    gradients.template AddRows<T>(memory, [&](int64_t row, T* sums) {
      const int64_t at = row * size;
      // Before the other gradients, which may take the place of Y@GRAD.
      norm.AddParameters(row, sum + at, dy + at, sums, sums + size);
      if (ds == nullptr) return;
      norm.Input(row, sum + at, dy + at, ds + at);
      if (more != nullptr) AddArrays(ds + at, more + at, ds + at, size);
      DropGradientRow(mask == nullptr ? nullptr : mask + at, static_cast<T>(dropout_.scale()),
                      ds + at, size, dx == nullptr ? nullptr : dx + at,
                      bias_gradient_ < 0 ? nullptr : sums + 2 * size);
    });
    gradients.template Write<T>(memory, 0, OutputData<T>(run, scale_gradient_));
    gradients.template Write<T>(memory, 1, OutputData<T>(run, shift_gradient_));
    gradients.template Write<T>(memory, 2, OutputData<T>(run, bias_gradient_));
  }

 private:
  RowSums Sums() const { return RowSums(rows_.count(), rows_.size, /*arrays=*/3); }

  // Where the gradient of Sum goes, which may have to make way for X@GRAD; nullptr if nobody wants
  // what follows from it.
  T* SumGradient(const KernelContext& run, T* dx) const {
    if (residual_gradient_ >= 0) return run.output(residual_gradient_).template data<T>();
    return unwanted_ < 0 ? dx : static_cast<T*>(run.workspace(unwanted_));
  }

  NormRows rows_;
  DropoutSettings dropout_;
  LayerNormGradArguments arguments_;
  int sum_;
  int mask_;
  int y_gradient_;
  int more_;  // of the gradient of Sum
  int x_gradient_;
  int bias_gradient_;
  int residual_gradient_;
  int scale_gradient_;
  int shift_gradient_;
  int memory_ = -1;
  int unwanted_ = -1;  // the gradient of Sum, if only Bias@GRAD needs it
};

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
  def.inputs = {
      {.name = "X", .doc = "Of rank 2 or more."},
      {.name = "Bias", .doc = "[elements of a row]; 0 if absent.", .dispensable = true},
      {.name = "Residual", .doc = "Like X; 0 if absent.", .dispensable = true},
      {.name = "LnScale", .doc = "[elements of a row]; 1 if absent.", .dispensable = true},
      {.name = "LnBias", .doc = "[elements of a row]; 0 if absent.", .dispensable = true}};
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
  registry.AddCpuKernels<float, double>(
      "bias_dropout_residual_layer_norm",
      []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<SumNormKernel<T>>(context);
      });
  registry.AddCpuKernels<float, double>(
      "bias_dropout_residual_layer_norm_grad",
      []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<SumNormGradKernel<T>>(context);
      });
}

}  // namespace skiff
