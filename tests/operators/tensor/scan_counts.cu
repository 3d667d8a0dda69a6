#include <cuda_runtime.h>

#include "operators/common/cuda/cuda_row_sort.cuh"
#include "tests/operators/tensor/scan_counts.h"

namespace skiff::harness {

std::vector<uint32_t> ScanCountsOnDevice(const std::vector<uint32_t>& counts, uint32_t tiles) {
  const size_t bytes = counts.size() * sizeof(uint32_t);
  const size_t total_bytes = row_sort::kDigits * sizeof(uint32_t);
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes + total_bytes) != cudaSuccess) return {};
  auto* const on_device = static_cast<uint32_t*>(memory);
  std::vector<uint32_t> scanned(counts.size() + row_sort::kDigits);
  bool succeeds = cudaMemcpy(memory, counts.data(), bytes, cudaMemcpyHostToDevice) == cudaSuccess;
  row_sort::ScanCounts<<<row_sort::kDigits, kCudaThreads>>>(tiles, on_device,
                                                            on_device + counts.size());
  succeeds &= cudaGetLastError() == cudaSuccess;
  succeeds &= cudaMemcpy(scanned.data(), memory, bytes + total_bytes, cudaMemcpyDeviceToHost) ==
              cudaSuccess;
  cudaFree(memory);
  if (!succeeds) scanned.clear();
  return scanned;
}

}  // namespace skiff::harness
