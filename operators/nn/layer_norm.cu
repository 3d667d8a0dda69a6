// CUDA kernels of layer_norm and its gradient; layer_norm.cc has the formulas.
#include <memory>

#include "framework/op/registry.h"
#include "operators/nn/kernels/cuda_layer_norm.cuh"
#include "operators/nn/kernels/layer_norm_arguments.h"

namespace skiff {
namespace {

template <typename T>
struct NormalizeRows {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    norm.Normalize(group, line, x, y);
  }

  CudaLayerNorm<T> norm;
  const T* x;
  T* y;
};

// dx may be dy.
template <typename T>
struct DifferentiateRows {
  template <class Group>
  __device__ void operator()(const Group& group, const CudaLine& line) const {
    norm.Differentiate(group, line, x, dy,
                       [&]<int kCount>(int64_t at, const CudaValues<T, kCount>& gradients) {
                         StoreValues(gradients, norm.is_aligned, dx + at);
                       });
  }

  CudaLayerNormGrad<T> norm;
  const T* x;
  const T* dy;
  T* dx;
};

template <typename T>
std::unique_ptr<Kernel> PrepareLayerNorm(PrepareContext& context) {
  return MakeRowsKernel(
      [axis = context.IntAttr("begin_norm_axis"), epsilon = context.Attr<float>("epsilon"),
       x_input = context.InputIndex("X"), scale_input = context.InputIndex("Scale"),
       bias_input = context.InputIndex("Bias"), y_output = context.OutputIndex("Y"),
       mean_output = context.OutputIndex("Mean"),
       variance_output = context.OutputIndex("Variance")](const KernelContext& run) {
        const NormRows rows(run.input(x_input).shape(), axis);
        const T* x = run.input(x_input).data<T>();
        const T* scale = InputData<T>(run, scale_input);
        const T* bias = InputData<T>(run, bias_input);
        T* y = run.output(y_output).data<T>();
        const CudaLayerNorm<T> norm{.epsilon = epsilon,
                                    .scale = scale,
                                    .bias = bias,
                                    .means = OutputData<T>(run, mean_output),
                                    .variances = OutputData<T>(run, variance_output),
                                    .is_aligned = ArePacksAligned(x, scale, bias, y)};
        ForEachLineOnDevice<T>(run, "layer_norm", {.outer = rows.count(), .length = rows.size},
                               NormalizeRows<T>{norm, x, y});
      });
}

template <typename T>
class LayerNormGradKernel final : public Kernel {
 public:
  explicit LayerNormGradKernel(PrepareContext& context)
      : axis_(context.IntAttr("begin_norm_axis")),
        epsilon_(context.Attr<float>("epsilon")),
        x_(context.InputIndex("X")),
        scale_(context.InputIndex("Scale")),
        mean_(context.InputIndex("Mean")),
        variance_(context.InputIndex("Variance")),
        y_gradient_(context.InputIndex("Y@GRAD")),
        x_gradient_(context.OutputIndex("X@GRAD")),
        scale_gradient_(context.OutputIndex("Scale@GRAD")),
        bias_gradient_(context.OutputIndex("Bias@GRAD")),
        parameters_(context, context.Input("X").shape.element_count()),
        slopes_(context.RequestWorkspace(NormRows(context.Input("X").shape, axis_).count() *
                                         static_cast<int64_t>(sizeof(T)))) {}

  bool TakesFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const NormRows rows(run.input(x_).shape(), axis_);
    const T* x = run.input(x_).template data<T>();
    const T* dy = run.input(y_gradient_).template data<T>();
    const T* scale = InputData<T>(run, scale_);
    T* dx = OutputData<T>(run, x_gradient_);
    const CudaLayerNormGrad<T> norm{.size = rows.size,
                                    .epsilon = epsilon_,
                                    .scale = scale,
                                    .means = run.input(mean_).template data<T>(),
                                    .variances = run.input(variance_).template data<T>(),
                                    .is_aligned = ArePacksAligned(x, dy, scale, dx)};
    // Before X@GRAD, which may take the place of Y@GRAD.
    if (scale_gradient_ >= 0 || bias_gradient_ >= 0) {
      T* slopes = static_cast<T*>(run.workspace(slopes_));
      ForEachOnDevice(run, "layer_norm_grad", rows.count(),
                      CudaLayerNormSlopes<T>{norm, x, slopes});
      parameters_.Run(run, "layer_norm_grad", CudaFoldView(rows.count(), rows.size),
                      {.x = x,
                       .dy = dy,
                       .means = norm.means,
                       .slopes = slopes,
                       .dscale = OutputData<T>(run, scale_gradient_),
                       .dbias = OutputData<T>(run, bias_gradient_)});
    }
    if (dx == nullptr) return;
    ForEachLineOnDevice<T>(run, "layer_norm_grad", {.outer = rows.count(), .length = rows.size},
                           DifferentiateRows<T>{norm, x, dy, dx});
  }

 private:
  int64_t axis_;
  double epsilon_;
  int x_;
  int scale_;
  int mean_;
  int variance_;
  int y_gradient_;
  int x_gradient_;
  int scale_gradient_;
  int bias_gradient_;
  CudaFold<CudaLayerNormParameters<T>> parameters_;
  int slopes_;
};

}  // namespace

void RegisterLayerNormCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(registry, "layer_norm", [=]<typename T>(PrepareContext& context) {
    return PrepareLayerNorm<T>(context);
  });
  AddCudaKernels<float, double>(
      registry, "layer_norm_grad",
      [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<LayerNormGradKernel<T>>(context);
      });
}

}  // namespace skiff
