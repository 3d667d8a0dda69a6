// CUDA kernels of relu and relu_grad; relu.cc has the formulas.
#include "framework/op/registry.h"
#include "operators/common/cuda_launch.h"

namespace skiff {
namespace {

template <typename T>
__global__ void Relu(const T* x, T* out, int64_t count) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  // A grid-stride loop: the number of blocks is limited (CudaBlocks), the number of elements isn't.
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    out[i] = x[i] < T(0) ? T(0) : x[i];
  }
}

template <typename T>
__global__ void ReluGrad(const T* out, const T* dout, T* dx, int64_t count) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    dx[i] = out[i] > T(0) ? dout[i] : T(0);
  }
}

template <typename T>
std::unique_ptr<Kernel> PrepareRelu(PrepareContext& context) {
  const int64_t count = context.Input("X").shape.element_count();
  return MakeKernel([count](const KernelContext& kernel) {
    Relu<T><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(kernel)>>>(
        kernel.input(0).data<T>(), kernel.output(0).data<T>(), count);
    CheckLaunch("relu");
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareReluGrad(PrepareContext& context) {
  const int out = context.InputIndex("Out");
  const int dout = context.InputIndex("Out@GRAD");
  const int64_t count = context.Input("Out").shape.element_count();
  return MakeKernel([=](const KernelContext& kernel) {
    ReluGrad<T><<<CudaBlocksOfThreads(count), kCudaThreads, 0, StreamOf(kernel)>>>(
        kernel.input(out).data<T>(), kernel.input(dout).data<T>(), kernel.output(0).data<T>(),
        count);
    CheckLaunch("relu_grad");
  });
}

template <typename T>
void RegisterKernels(OpRegistry& registry) {
  registry.AddKernel("relu", {.name = "cuda",
                              .place = PlaceKind::kCuda,
                              .dtype = kDTypeOf<T>,
                              .prepare = PrepareRelu<T>,
                              .accepts = {}});
  registry.AddKernel("relu_grad", {.name = "cuda",
                                   .place = PlaceKind::kCuda,
                                   .dtype = kDTypeOf<T>,
                                   .prepare = PrepareReluGrad<T>,
                                   .accepts = {}});
}

}  // namespace

void RegisterReluCuda(OpRegistry& registry) {
  RegisterKernels<float>(registry);
  RegisterKernels<double>(registry);
}

}  // namespace skiff
