#include "memory/cuda_allocator.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "framework/base/error.h"

namespace skiff {
namespace {

class CudaAllocator final : public Allocator {
 public:
  explicit CudaAllocator(int32_t device) : device_(device) {}

  Place place() const override { return Place::Cuda(device_); }

  void* Allocate(int64_t bytes) override {
    SKIFF_ENFORCE(bytes >= 0, kInvalidArgument, "allocation of ", bytes, " bytes");
    if (bytes == 0) return nullptr;
    std::lock_guard lock(mutex_);
    void* block = nullptr;
    cudaError_t status = cudaSetDevice(device_);
    if (status == cudaSuccess) status = cudaMalloc(&block, static_cast<size_t>(bytes));
    SKIFF_ENFORCE(status == cudaSuccess, kResourceExhausted, "out of memory on ", place(), ": ",
                  bytes, " bytes asked for, ", statistics_.live_bytes, " bytes live (",
                  cudaGetErrorString(status), ")");
    ++statistics_.allocations;
    statistics_.live_bytes += bytes;
    statistics_.peak_bytes = std::max(statistics_.peak_bytes, statistics_.live_bytes);
    return block;
  }

  void Free(void* block, int64_t bytes) noexcept override {
    if (block == nullptr) return;
    std::lock_guard lock(mutex_);
    cudaFree(block);
    statistics_.live_bytes -= bytes;
  }

  AllocatorStatistics statistics() const override {
    std::lock_guard lock(mutex_);
    return statistics_;
  }

 private:
  const int32_t device_;
  mutable std::mutex mutex_;
  AllocatorStatistics statistics_;
};

struct Devices {
  std::vector<std::unique_ptr<CudaAllocator>> allocators;
  cudaError_t status = cudaSuccess;  // of the count
};

Devices* FindDevices() {
  auto* devices = new Devices;
  int count = 0;
  devices->status = cudaGetDeviceCount(&count);
  if (devices->status != cudaSuccess) return devices;
  for (int32_t i = 0; i < count; ++i) {
    devices->allocators.push_back(std::make_unique<CudaAllocator>(i));
  }
  return devices;
}

}  // namespace

Allocator& CudaAllocatorOf(int32_t device) {
  static const Devices& devices = *FindDevices();
  SKIFF_ENFORCE(devices.status == cudaSuccess, kNotFound, "place cuda:", device,
                ": no CUDA devices (", cudaGetErrorString(devices.status), ")");
  SKIFF_ENFORCE(device >= 0 && device < static_cast<int32_t>(devices.allocators.size()), kNotFound,
                "place cuda:", device, ": this machine has ", devices.allocators.size(),
                " CUDA devices");
  return *devices.allocators[static_cast<size_t>(device)];
}

}  // namespace skiff
