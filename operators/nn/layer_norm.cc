// layer_norm: normalizes each row to mean 0 and variance 1, then scales and shifts it element by
// element. X is seen as a matrix: the dims before begin_norm_axis are its rows.
//
//   Y = (X - mean) / sqrt(variance + epsilon) · Scale + Bias
//
// Mean and Variance (biased, without epsilon) have one value per row. Gradient, with h = 1 /
// sqrt(variance + epsilon), z = (X - mean) · h and g = Y@GRAD · Scale over rows of m elements:
//   Bias@GRAD = sum over rows of Y@GRAD,  Scale@GRAD = sum over rows of Y@GRAD · z
//   X@GRAD = h · (g - sum g / m - z · sum (g · z) / m)
//
// A row is read twice, for its moments and to normalize it (or for its sums and its gradient), so
// a row that fits in the cache comes from memory once.
//
// Source: Ba, Kiros & Hinton 2016; Fluid's layer_norm (PaddlePaddle 2.6).
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/nn/kernels/image_window.h"
#include "operators/nn/kernels/norm_arguments.h"
#include "operators/nn/kernels/row_norm.h"

namespace skiff {
namespace {

// X as a matrix; -1 is unknown.
struct Rows {
  Shape batch;  // the dims that make the rows
  int64_t size = 1;

  int64_t count() const { return batch.element_count(); }
};

Rows ParseRows(const OpContext& context) {
  const Shape& x = context.Input("X").shape;
  const int64_t axis = context.IntAttr("begin_norm_axis");
  SKIFF_ENFORCE(axis >= 1 && axis < x.rank(), kInvalidArgument, context.op().type,
                ": begin_norm_axis = ", axis, " is outside [1, ", x.rank() - 1, "] for X of shape ",
                x);
  Rows rows;
  for (int i = 0; i < x.rank(); ++i) {
    if (i < axis) {
      rows.batch.Append(x[i]);
    } else {
      rows.size = rows.size < 0 || x[i] < 0 ? -1 : MultiplyCounts(rows.size, x[i]);
    }
  }
  return rows;
}

void Infer(OpContext& context) {
  const Rows rows = ParseRows(context);
  CheckVectors(context, {"Scale", "Bias"}, rows.size, "element of a row");
  context.SetOutputLike("Y", "X");
  for (const char* slot : {"Mean", "Variance"}) {
    context.SetOutput(slot, rows.batch, context.Input("X").dtype);
  }
}

void InferGrad(OpContext& context) {
  const Rows rows = ParseRows(context);
  CheckVectors(context, {"Scale", "Bias"}, rows.size, "element of a row");
  CheckInputLike(context, "Y@GRAD", context.Input("X").shape, context.Input("X").dtype);
  for (const char* slot : {"Mean", "Variance"}) {
    CheckInputLike(context, slot, rows.batch, context.Input("X").dtype);
  }
  context.SetOutputLike("X@GRAD", "X");
  for (const char* slot : {"Scale@GRAD", "Bias@GRAD"}) {
    context.SetOutput(slot, {rows.size}, context.Input("X").dtype);
  }
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const Rows parsed = ParseRows(context);
  const int64_t rows = parsed.count();
  const int64_t size = parsed.size;
  const double epsilon = context.Attr<float>("epsilon");
  const int x_input = context.InputIndex("X");
  const int scale_input = context.InputIndex("Scale");
  const int bias_input = context.InputIndex("Bias");
  const int y_output = context.OutputIndex("Y");
  const int mean_output = context.OutputIndex("Mean");
  const int variance_output = context.OutputIndex("Variance");
  return MakeKernel([=](const KernelContext& run) {
    const T* x = run.input(x_input).data<T>();
    const T* scale = InputData<T>(run, scale_input);
    const T* bias = InputData<T>(run, bias_input);
    T* y = run.output(y_output).data<T>();
    T* means = OutputData<T>(run, mean_output);
    T* variances = OutputData<T>(run, variance_output);
    ParallelFor(rows, GrainOf(size), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const RunMoments moments = MomentsOf(x + row * size, size);
        // A row of no elements has moments of 0; max avoids 0 / 0.
        const double variance = moments.squares / static_cast<double>(std::max<int64_t>(size, 1));
        const T mean = static_cast<T>(moments.mean);
        if (means != nullptr) means[row] = mean;
        if (variances != nullptr) variances[row] = static_cast<T>(variance);
        const T slope = static_cast<T>(1 / std::sqrt(variance + epsilon));
        NormalizeRow(x + row * size, size, mean, slope, scale, bias, y + row * size);
      }
    });
  });
}

// Memory for the gradients of Scale and Bias, which are sums over rows. The rows are cut into
// parts, each with sums of its own, so that threads share nothing they write. The number of parts
// depends only on the sizes, and Combine adds them in order, so results don't depend on the number
// of threads.
//
// Within a part, T adds up some rows before the sum goes to float64: a vector holds twice as many
// float32 as float64, and a sum of few terms loses few digits.
class ParameterSums {
 public:
  ParameterSums(int64_t rows, int64_t size)
      : rows_(rows),
        size_(size),
        parts_(std::clamp<int64_t>(
            std::min(rows / kMinPartRows, kMaxPartElements / std::max<int64_t>(size, 1)), 1,
            kMaxParts)) {}

  int64_t parts() const { return parts_; }
  int64_t PartBegin(int64_t part) const { return rows_ * part / parts_; }

  // Each part has two arrays of float64 and two of T.
  template <typename T>
  int64_t bytes() const {
    return parts_ * 2 * size_ * static_cast<int64_t>(sizeof(double) + sizeof(T));
  }
  double* Totals(void* memory, int64_t part) const {
    return static_cast<double*>(memory) + part * 2 * size_;
  }
  template <typename T>
  T* Partial(void* memory, int64_t part) const {
    return reinterpret_cast<T*>(static_cast<double*>(memory) + parts_ * 2 * size_) +
           part * 2 * size_;
  }

  // The number of rows that T adds up.
  static constexpr int64_t kRowsOfT = 64;

 private:
  // A part has at least kMinPartRows rows to pay for clearing and combining its sums, and the parts
  // together hold at most kMaxPartElements sums of each kind (one part may hold more).
  static constexpr int64_t kMinPartRows = 16;
  static constexpr int64_t kMaxParts = 64;
  static constexpr int64_t kMaxPartElements = 1 << 20;

  int64_t rows_;
  int64_t size_;
  int64_t parts_;
};

template <typename T>
class LayerNormGradKernel final : public Kernel {
 public:
  explicit LayerNormGradKernel(PrepareContext& context)
      : size_(ParseRows(context).size),
        rows_(ParseRows(context).count()),
        epsilon_(context.Attr<float>("epsilon")),
        sums_(rows_, size_),
        x_(context.InputIndex("X")),
        scale_(context.InputIndex("Scale")),
        mean_(context.InputIndex("Mean")),
        variance_(context.InputIndex("Variance")),
        y_gradient_(context.InputIndex("Y@GRAD")),
        x_gradient_(context.OutputIndex("X@GRAD")),
        scale_gradient_(context.OutputIndex("Scale@GRAD")),
        bias_gradient_(context.OutputIndex("Bias@GRAD")) {
    if (WantsParameters()) memory_ = context.RequestWorkspace(sums_.bytes<T>());
  }

  void Run(const KernelContext& run) override {
    // Without sums over rows, rows are independent of each other.
    if (!WantsParameters()) {
      ParallelFor(rows_, GrainOf(size_), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) InputGradient(run, row);
      });
      return;
    }
    void* memory = run.workspace(memory_);
    const int64_t part_work = rows_ / sums_.parts() * size_;
    ParallelFor(sums_.parts(), GrainOf(part_work), [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) RunPart(run, memory, part);
    });
    ParallelFor(size_, GrainOf(2 * sums_.parts()), [&](int64_t begin, int64_t end) {
      Combine(memory, begin, end, OutputData<T>(run, scale_gradient_),
              OutputData<T>(run, bias_gradient_));
    });
  }

 private:
  bool WantsParameters() const { return scale_gradient_ >= 0 || bias_gradient_ >= 0; }

  // 1 / sqrt(variance + epsilon) of a row.
  T SlopeOf(const KernelContext& run, int64_t row) const {
    // A single element is its row's mean: Y doesn't depend on it, and the general formula would
    // leave rounding errors.
    if (size_ == 1) return 0;
    const auto variance = static_cast<double>(InputData<T>(run, variance_)[row]);
    return static_cast<T>(1 / std::sqrt(variance + epsilon_));
  }

  void RunPart(const KernelContext& run, void* memory, int64_t part) const {
    double* totals = sums_.Totals(memory, part);
    T* partial = sums_.template Partial<T>(memory, part);
    std::fill_n(totals, 2 * size_, 0.0);
    std::fill_n(partial, 2 * size_, T{0});
    const int64_t first = sums_.PartBegin(part);
    const int64_t end = sums_.PartBegin(part + 1);
    for (int64_t row = first; row < end; ++row) {
      const T* x = InputData<T>(run, x_) + row * size_;
      const T* dy = InputData<T>(run, y_gradient_) + row * size_;
      // Before X@GRAD is written, which may overwrite Y@GRAD.
      AddParameterGradients(x, dy, size_, InputData<T>(run, mean_)[row], SlopeOf(run, row), partial,
                            partial + size_);
      InputGradient(run, row);
      if (row + 1 < end && (row + 1 - first) % ParameterSums::kRowsOfT != 0) continue;
      for (int64_t i = 0; i < 2 * size_; ++i) totals[i] += static_cast<double>(partial[i]);
      std::fill_n(partial, 2 * size_, T{0});
    }
  }

  void InputGradient(const KernelContext& run, int64_t row) const {
    if (x_gradient_ < 0) return;
    const T* x = InputData<T>(run, x_) + row * size_;
    const T* dy = InputData<T>(run, y_gradient_) + row * size_;
    const T* scale = InputData<T>(run, scale_);
    const T mean = InputData<T>(run, mean_)[row];
    const T slope = SlopeOf(run, row);
    const RunGradientSums sums = GradientSumsOf(x, dy, scale, size_, mean);
    const auto count = static_cast<double>(std::max<int64_t>(size_, 1));
    // h · z · sum(g · z) / m = (x - mean) · h³ · sum(g · (x - mean)) / m, so the factor of x - mean
    // contains h³, and x is never normalized again.
    const auto h = static_cast<double>(slope);
    GradientRow(x, dy, scale, size_,
                {.mean = mean,
                 .slope = slope,
                 .factor = static_cast<T>(h * h * h * sums.product / count),
                 .offset = static_cast<T>(h * sums.sum / count)},
                OutputData<T>(run, x_gradient_) + row * size_);
  }

  void Combine(void* memory, int64_t begin, int64_t end, T* scale_gradient,
               T* bias_gradient) const {
    for (int64_t i = begin; i < end; ++i) {
      double scale_sum = 0;
      double bias_sum = 0;
      for (int64_t part = 0; part < sums_.parts(); ++part) {
        scale_sum += sums_.Totals(memory, part)[i];
        bias_sum += sums_.Totals(memory, part)[size_ + i];
      }
      if (scale_gradient != nullptr) scale_gradient[i] = static_cast<T>(scale_sum);
      if (bias_gradient != nullptr) bias_gradient[i] = static_cast<T>(bias_sum);
    }
  }

  int64_t size_;
  int64_t rows_;
  double epsilon_;
  ParameterSums sums_;
  int x_;
  int scale_;
  int mean_;
  int variance_;
  int y_gradient_;
  int x_gradient_;
  int scale_gradient_;
  int bias_gradient_;
  int memory_ = -1;
};

std::vector<AttrDef> Attributes() {
  return {EpsilonAttr(),
          {.name = "begin_norm_axis",
           .type = AttrType::kInt,
           .default_value = int32_t{1},
           .doc = "The first of the dims that make a row, at least 1."}};
}

OpDef LayerNormDef() {
  OpDef def;
  def.type = "layer_norm";
  def.doc =
      "Y = (X - mean) / sqrt(variance + epsilon) * Scale + Bias, with mean and variance of each "
      "row, the dims from begin_norm_axis on.";
  def.inputs = {{.name = "X", .doc = "Of rank 2 or more."},
                {.name = "Scale", .doc = "[elements of a row]; 1 if absent.", .dispensable = true},
                {.name = "Bias", .doc = "[elements of a row]; 0 if absent.", .dispensable = true}};
  def.outputs = {{.name = "Y", .doc = "Like X."},
                 {.name = "Mean",
                  .doc = "Of the rows; the dims of X before begin_norm_axis.",
                  .dispensable = true,
                  .intermediate = true},
                 {.name = "Variance",
                  .doc = "Of the rows, biased.",
                  .dispensable = true,
                  .intermediate = true}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.grad = GradOp("layer_norm_grad", {"X", "Scale", "Bias", "Mean", "Variance", "Y@GRAD"},
                    {"X@GRAD", "Scale@GRAD", "Bias@GRAD"});
  def.in_place = {{"X", "Y"}};
  return def;
}

OpDef LayerNormGradDef() {
  OpDef def;
  def.type = "layer_norm_grad";
  def.doc =
      "With h = 1 / sqrt(Variance + epsilon), z = (X - Mean) * h, g = Y@GRAD * Scale and rows of m "
      "elements: X@GRAD = h * (g - sum g / m - z * sum(g * z) / m); Scale@GRAD = the sum of Y@GRAD "
      "* z and Bias@GRAD that of Y@GRAD over rows.";
  def.inputs = {{.name = "X", .doc = "Of layer_norm."},
                {.name = "Scale", .doc = "Of layer_norm.", .dispensable = true},
                {.name = "Bias", .doc = "Of layer_norm.", .dispensable = true, .shape_only = true},
                {.name = "Mean", .doc = "Of layer_norm."},
                {.name = "Variance", .doc = "Of layer_norm."},
                {.name = "Y@GRAD", .doc = "The gradient of Y."}};
  def.outputs = {{.name = "X@GRAD", .doc = "Like X.", .dispensable = true},
                 {.name = "Scale@GRAD", .doc = "Like Scale.", .dispensable = true},
                 {.name = "Bias@GRAD", .doc = "Like Bias.", .dispensable = true}};
  def.attrs = Attributes();
  def.infer = InferGrad;
  def.no_gradient_reason = "second derivatives of layer normalization are not provided";
  def.in_place = {{"Y@GRAD", "X@GRAD"}};
  return def;
}

}  // namespace

void RegisterLayerNorm(OpRegistry& registry) {
  registry.Add(LayerNormDef());
  registry.Add(LayerNormGradDef());
  registry.AddCpuKernels<float, double>(
      "layer_norm", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "layer_norm_grad", []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<LayerNormGradKernel<T>>(context);
      });
}

}  // namespace skiff
