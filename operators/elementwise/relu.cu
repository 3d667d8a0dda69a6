// CUDA kernels of relu and relu_grad; relu.cc has the formulas.
#include <cuda_runtime.h>

#include <algorithm>

#include "framework/base/error.h"
#include "framework/op/registry.h"

namespace skiff {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 4096;

template <typename T>
__global__ void Relu(const T* x, T* out, int64_t count) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
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

int BlocksFor(int64_t count) {
  return static_cast<int>(std::min((count + kThreads - 1) / kThreads, kMaxBlocks));
}

void CheckLaunch(const char* what) {
  const cudaError_t status = cudaGetLastError();
  SKIFF_ENFORCE(status == cudaSuccess, kIo, what, ": launch failed: ", cudaGetErrorString(status));
}

template <typename T>
std::unique_ptr<Kernel> PrepareRelu(PrepareContext& context) {
  const int64_t count = context.Input("X").shape.element_count();
  return MakeKernel([count](const KernelContext& kernel) {
    if (count == 0) return;
    const auto stream = static_cast<cudaStream_t>(kernel.device().stream);
    Relu<T><<<BlocksFor(count), kThreads, 0, stream>>>(kernel.input(0).data<T>(),
                                                       kernel.output(0).data<T>(), count);
    CheckLaunch("relu");
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareReluGrad(PrepareContext& context) {
  const int out = context.InputIndex("Out");
  const int dout = context.InputIndex("Out@GRAD");
  const int64_t count = context.Input("Out").shape.element_count();
  return MakeKernel([=](const KernelContext& kernel) {
    if (count == 0) return;
    const auto stream = static_cast<cudaStream_t>(kernel.device().stream);
    ReluGrad<T><<<BlocksFor(count), kThreads, 0, stream>>>(kernel.input(out).data<T>(),
                                                           kernel.input(dout).data<T>(),
                                                           kernel.output(0).data<T>(), count);
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
