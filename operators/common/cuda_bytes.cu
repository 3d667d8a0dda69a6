#include <cuda_runtime.h>

#include "framework/base/error.h"
#include "operators/common/cuda_bytes.h"
#include "operators/common/cuda_launch.h"

namespace skiff {
namespace {

void CheckBytes(cudaError_t status, const char* what, int64_t bytes) {
  SKIFF_ENFORCE(status == cudaSuccess, kIo, what, " of ", bytes,
                " bytes on a device: ", cudaGetErrorString(status));
}

}  // namespace

void CopyOnDevice(const KernelContext& run, const void* from, void* to, int64_t bytes) {
  if (from == to || bytes == 0) return;
  CheckBytes(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice,
                             StreamOf(run)),
             "copy", bytes);
}

void FillBytesOnDevice(const KernelContext& run, void* to, int byte, int64_t bytes) {
  FillBytesOnDevice(StreamOf(run), to, byte, bytes);
}

void FillBytesOnDevice(void* stream, void* to, int byte, int64_t bytes) {
  if (bytes == 0) return;
  CheckBytes(
      cudaMemsetAsync(to, byte, static_cast<size_t>(bytes), static_cast<cudaStream_t>(stream)),
      "fill", bytes);
}

}  // namespace skiff
