#include "memory/cuda_copy.h"

#include <cuda_runtime.h>

#include "framework/base/error.h"

namespace skiff {

void CopyBytes(void* to, Place to_place, const void* from, Place from_place, size_t bytes) {
  const cudaError_t status = cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
  SKIFF_ENFORCE(status == cudaSuccess, kIo, "copy from ", from_place, " to ", to_place, ": ",
                cudaGetErrorString(status));
}

void WaitForStream(void* stream) {
  const cudaError_t status = cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
  SKIFF_ENFORCE(status == cudaSuccess, kIo, "wait for a stream: ", cudaGetErrorString(status));
}

}  // namespace skiff
