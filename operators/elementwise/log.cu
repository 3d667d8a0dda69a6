// CUDA kernels of log and log_grad; log.cc has the formulas.
#include <cmath>

#include "operators/elementwise/kernels/cuda_unary.cuh"

namespace skiff {
namespace {

struct Log {
  template <typename T>
  __device__ T operator()(T x) const {
    return std::log(x);
  }
};

struct LogGrad {
  template <typename T>
  __device__ T operator()(T x, T dout) const {
    return dout / x;
  }
};

}  // namespace

void RegisterLogCuda(OpRegistry& registry) {
  AddCudaUnary<Log, LogGrad>(registry, {.type = "log", .grad_reads = "X"});
}

}  // namespace skiff
