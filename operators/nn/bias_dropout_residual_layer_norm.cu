// CUDA kernels of bias_dropout_residual_layer_norm and its gradient;
// bias_dropout_residual_layer_norm.cc has the formulas.
#include <memory>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/dropout_settings.h"
#include "operators/nn/kernels/cuda_dropout.cuh"
#include "operators/nn/kernels/cuda_layer_norm.cuh"
#include "operators/nn/kernels/layer_norm_arguments.h"

namespace skiff {
namespace {

NormRows RowsOf(const Shape& shape) { return NormRows(shape, shape.rank() - 1); }

// The arrays of a run; those of optional arguments may be nullptr. The sums may be x or the
// residuals. Sums that nobody reads lie for a while where Y will.
template <typename T>
struct SumAndNormalize {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    line.ForEach<T>(group, [&]<int kCount>(int64_t j, int64_t at) {
      CudaValues<T, kCount> values = LoadValues<kCount>(x + at, norm.is_aligned);
      if (bias != nullptr) {
        const CudaValues<T, kCount> biases = LoadValues<kCount>(bias + j, norm.is_aligned);
#pragma unroll
        for (int k = 0; k < kCount; ++k) values.at[k] += biases.at[k];
      }
      const CudaDropped<kCount> dropped = dropout.template Of<kCount>(at);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        values.at[k] = dropped.at[k] ? T{0} : values.at[k] * scale;
      }
      if (residual != nullptr) {
        const CudaValues<T, kCount> residuals = LoadValues<kCount>(residual + at, norm.is_aligned);
#pragma unroll
        for (int k = 0; k < kCount; ++k) values.at[k] += residuals.at[k];
      }
      StoreValues(values, norm.is_aligned, sums + at);
      if (mask == nullptr) return;
#pragma unroll
      for (int k = 0; k < kCount; ++k) mask[at + k] = dropped.at[k] ? 0 : 1;
    });
    norm.Normalize(group, line, sums, y);
  }

  CudaLayerNorm<T> norm;
  CudaDropout dropout;
  T scale;  // of what is kept
  const T* x;
  const T* bias;
  const T* residual;
  T* sums;
  T* y;
  uint8_t* mask;
};

// Each gradient may be nullptr, or dy.
template <typename T>
struct DifferentiateSums {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    norm.Differentiate(
        group, line, sums, dy, [&]<int kCount>(int64_t at, CudaValues<T, kCount> gradients) {
          if (more != nullptr) {
            const CudaValues<T, kCount> others = LoadValues<kCount>(more + at, norm.is_aligned);
#pragma unroll
            for (int k = 0; k < kCount; ++k) gradients.at[k] += others.at[k];
          }
          if (dresidual != nullptr) StoreValues(gradients, norm.is_aligned, dresidual + at);
          if (dx == nullptr) return;
#pragma unroll
          for (int k = 0; k < kCount; ++k) {
            gradients.at[k] = mask != nullptr && mask[at + k] == 0 ? T{0} : gradients.at[k] * scale;
          }
          StoreValues(gradients, norm.is_aligned, dx + at);
        });
  }

  CudaLayerNormGrad<T> norm;
  T scale;
  const T* sums;
  const T* dy;
  const T* more;        // of the gradient of Sum
  const uint8_t* mask;  // nullptr: nothing was dropped
  T* dresidual;
  T* dx;
};

template <typename T>
struct BiasGradient {
  using Carry = double;
  static __device__ Carry Identity() { return 0; }
  static __device__ Carry Join(Carry a, Carry b) { return a + b; }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    *carry += static_cast<double>(dx[place]);
  }
  __device__ void Finish(int64_t column, Carry sum) const { dbias[column] = static_cast<T>(sum); }

  const T* dx;
  T* dbias;
};

template <typename T>
std::unique_ptr<Kernel> PrepareBiasDropoutResidualLayerNorm(PrepareContext& context) {
  return MakeRowsKernel(
      [settings = DropoutSettingsOf(context), epsilon = context.Attr<float>("epsilon"),
       x_input = context.InputIndex("X"), bias_input = context.InputIndex("Bias"),
       residual_input = context.InputIndex("Residual"), scale_input = context.InputIndex("LnScale"),
       shift_input = context.InputIndex("LnBias"), y_output = context.OutputIndex("Y"),
       sum_output = context.OutputIndex("Sum"), mask_output = context.OutputIndex("Mask"),
       mean_output = context.OutputIndex("Mean"),
       variance_output = context.OutputIndex("Variance")](const KernelContext& run) {
        const NormRows rows = RowsOf(run.input(x_input).shape());
        const T* x = run.input(x_input).data<T>();
        const T* bias = InputData<T>(run, bias_input);
        const T* residual = InputData<T>(run, residual_input);
        const T* scale = InputData<T>(run, scale_input);
        const T* shift = InputData<T>(run, shift_input);
        T* y = run.output(y_output).data<T>();
        T* sums = sum_output < 0 ? y : run.output(sum_output).data<T>();
        const CudaLayerNorm<T> norm{
            .epsilon = epsilon,
            .scale = scale,
            .bias = shift,
            .means = OutputData<T>(run, mean_output),
            .variances = OutputData<T>(run, variance_output),
            .is_aligned = ArePacksAligned(x, bias, residual, scale, shift, sums, y)};
        ForEachLineOnDevice<T>(run, "bias_dropout_residual_layer_norm",
                               {.outer = rows.count(), .length = rows.size},
                               SumAndNormalize<T>{.norm = norm,
                                                  .dropout = CudaDropout(settings, run),
                                                  .scale = static_cast<T>(settings.scale()),
                                                  .x = x,
                                                  .bias = bias,
                                                  .residual = residual,
                                                  .sums = sums,
                                                  .y = y,
                                                  .mask = OutputData<uint8_t>(run, mask_output)});
      });
}

template <typename T>
class BiasDropoutResidualLayerNormGradKernel final : public Kernel {
 public:
  explicit BiasDropoutResidualLayerNormGradKernel(PrepareContext& context)
      : dropout_(DropoutSettingsOf(context)),
        epsilon_(context.Attr<float>("epsilon")),
        sum_(context.InputIndex("Sum")),
        mask_(context.InputIndex("Mask")),
        scale_(context.InputIndex("LnScale")),
        mean_(context.InputIndex("Mean")),
        variance_(context.InputIndex("Variance")),
        y_gradient_(context.InputIndex("Y@GRAD")),
        more_(context.InputIndex("Sum@GRAD")),
        x_gradient_(context.OutputIndex("X@GRAD")),
        bias_gradient_(context.OutputIndex("Bias@GRAD")),
        residual_gradient_(context.OutputIndex("Residual@GRAD")),
        scale_gradient_(context.OutputIndex("LnScale@GRAD")),
        shift_gradient_(context.OutputIndex("LnBias@GRAD")),
        parameters_(context, context.Input("Sum").shape.element_count()),
        biases_(context, context.Input("Sum").shape.element_count()),
        slopes_(context.RequestWorkspace(RowsOf(context.Input("Sum").shape).count() *
                                         static_cast<int64_t>(sizeof(T)))) {
    const bool reads_mask = dropout_.draws() || dropout_.drops_all();
    SKIFF_ENFORCE(mask_ >= 0 || !reads_mask, kInvalidArgument, context.op().type,
                  ": Mask is missing, expected that of the forward op");
    if (!reads_mask) mask_ = -1;
    if (x_gradient_ < 0 && bias_gradient_ >= 0) {
      unwanted_ = context.RequestWorkspace(context.Input("Sum").shape.element_count() *
                                           static_cast<int64_t>(sizeof(T)));
    }
  }

  bool TakesFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const char* what = "bias_dropout_residual_layer_norm_grad";
    const NormRows rows = RowsOf(run.input(sum_).shape());
    const CudaFoldView columns(rows.count(), rows.size);
    const T* sums = run.input(sum_).template data<T>();
    const T* dy = run.input(y_gradient_).template data<T>();
    const T* scale = InputData<T>(run, scale_);
    const T* more = InputData<T>(run, more_);
    T* dresidual = OutputData<T>(run, residual_gradient_);
    T* dx =
        unwanted_ < 0 ? OutputData<T>(run, x_gradient_) : static_cast<T*>(run.workspace(unwanted_));
    const CudaLayerNormGrad<T> norm{
        .size = rows.size,
        .epsilon = epsilon_,
        .scale = scale,
        .means = run.input(mean_).template data<T>(),
        .variances = run.input(variance_).template data<T>(),
        .is_aligned = ArePacksAligned(sums, dy, scale, more, dresidual, dx)};
    // Before the other gradients, which may take the place of Y@GRAD.
    if (scale_gradient_ >= 0 || shift_gradient_ >= 0) {
      T* slopes = static_cast<T*>(run.workspace(slopes_));
      ForEachOnDevice(run, what, rows.count(), CudaLayerNormSlopes<T>{norm, sums, slopes});
      parameters_.Run(run, what, columns,
                      {.x = sums,
                       .dy = dy,
                       .means = norm.means,
                       .slopes = slopes,
                       .dscale = OutputData<T>(run, scale_gradient_),
                       .dbias = OutputData<T>(run, shift_gradient_)});
    }
    if (residual_gradient_ < 0 && x_gradient_ < 0 && unwanted_ < 0) return;
    ForEachLineOnDevice<T>(run, what, {.outer = rows.count(), .length = rows.size},
                           DifferentiateSums<T>{.norm = norm,
                                                .scale = static_cast<T>(dropout_.scale()),
                                                .sums = sums,
                                                .dy = dy,
                                                .more = more,
                                                .mask = InputData<uint8_t>(run, mask_),
                                                .dresidual = dresidual,
                                                .dx = dx});
    if (bias_gradient_ < 0) return;
    biases_.Run(run, what, columns, {dx, OutputData<T>(run, bias_gradient_)});
  }

 private:
  DropoutSettings dropout_;
  double epsilon_;
  int sum_;
  int mask_;
  int scale_;
  int mean_;
  int variance_;
  int y_gradient_;
  int more_;  // of the gradient of Sum
  int x_gradient_;
  int bias_gradient_;
  int residual_gradient_;
  int scale_gradient_;
  int shift_gradient_;
  CudaFold<CudaLayerNormParameters<T>> parameters_;
  CudaFold<BiasGradient<T>> biases_;
  int slopes_;
  int unwanted_ = -1;  // X@GRAD, if only Bias@GRAD needs it
};

}  // namespace

void RegisterBiasDropoutResidualLayerNormCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "bias_dropout_residual_layer_norm",
                                [=]<typename T>(PrepareContext& context) {
                                  return PrepareBiasDropoutResidualLayerNorm<T>(context);
                                });
  AddCudaKernels<float, double>(
      registry, "bias_dropout_residual_layer_norm_grad",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<BiasDropoutResidualLayerNormGradKernel<T>>(context);
      });
}

}  // namespace skiff
