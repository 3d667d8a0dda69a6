#include "memory/cuda_allocator.h"

#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "memory/cuda_memory.h"

namespace skiff {
namespace {

constexpr int64_t kMegabyte = int64_t{1} << 20;
constexpr int64_t kMaxSmallBlock = 1 * kMegabyte;
// What cudaMalloc promises, so that kernels may rely on it.
constexpr int64_t kDeviceAlignment = 256;
constexpr int64_t kDeviceRounding = 512;

// One segment per class and stream, with addresses for all memory of the device. Memory is mapped
// to it where it is needed, so it never has to be split into segments that leave useless rests.
// Small blocks get small chunks, large ones large chunks, which take fewer calls of the driver.
std::vector<BlockClass> ClassesOnMappedMemory(const std::shared_ptr<VirtualMemory>& memory,
                                              int64_t address_bytes) {
  return {{.source = std::make_shared<VirtualSegmentSource>(memory, 2 * kMegabyte),
           .max_block_bytes = kMaxSmallBlock,
           .segment_bytes = address_bytes,
           .max_parked_bytes = kMegabyte,
           .rounding = kDeviceRounding,
           .alignment = kDeviceAlignment},
          {.source = std::make_shared<VirtualSegmentSource>(memory, 16 * kMegabyte),
           .segment_bytes = address_bytes,
           .rounding = kDeviceRounding,
           .alignment = kDeviceAlignment}};
}

// Segments of multiples of 2 MiB, since cudaMalloc takes whole multiples of that anyway.
std::vector<BlockClass> ClassesOnWholeSegments(int32_t device) {
  const std::shared_ptr<SegmentSource> source = MakeCudaMallocSource(device);
  return {{.source = source,
           .max_block_bytes = kMaxSmallBlock,
           .segment_bytes = 2 * kMegabyte,
           .max_parked_bytes = kMegabyte,
           .rounding = kDeviceRounding,
           .alignment = kDeviceAlignment},
          {.source = source,
           .max_block_bytes = 10 * kMegabyte,
           .segment_bytes = 20 * kMegabyte,
           .rounding = kDeviceRounding,
           .alignment = kDeviceAlignment},
          {.source = source, .rounding = 2 * kMegabyte, .alignment = kDeviceAlignment}};
}

struct Devices {
  std::vector<std::unique_ptr<CachingAllocator>> allocators;
  cudaError_t status = cudaSuccess;  // of the count
};

Devices* FindDevices() {
  auto* devices = new Devices;
  int count = 0;
  devices->status = cudaGetDeviceCount(&count);
  if (devices->status != cudaSuccess) return devices;
  for (int32_t i = 0; i < count; ++i) {
    devices->allocators.push_back(
        std::make_unique<CachingAllocator>(CudaCachingOptions(i), MakeCudaEvents(i)));
  }
  return devices;
}

// Never destroyed: tensors with static lifetime may return blocks at exit.
const Devices& TheDevices() {
  static const Devices& devices = *FindDevices();
  return devices;
}

// Returns which devices there are, for a message.
std::string CountText(size_t count) {
  if (count == 1) return "there is one CUDA device, expected cuda:0";
  return StrCat("there are ", count, " CUDA devices, expected cuda:0 to cuda:", count - 1);
}

}  // namespace

CachingOptions CudaCachingOptions(int32_t device, bool expandable) {
  CachingOptions options{.place = Place::Cuda(device), .name = PlaceName(Place::Cuda(device))};
  const std::shared_ptr<VirtualMemory> memory =
      expandable ? MakeCudaVirtualMemory(device) : nullptr;
  const int64_t address_bytes = memory == nullptr ? 0 : CudaMemoryBytes(device);
  options.classes = address_bytes > 0 ? ClassesOnMappedMemory(memory, address_bytes)
                                      : ClassesOnWholeSegments(device);
  return options;
}

CachingOptions PinnedCachingOptions() {
  const std::shared_ptr<SegmentSource> source = MakeCudaPinnedSource();
  return {.place = Place::Cpu(),
          .name = "pinned",
          .classes = {
              {.source = source, .max_block_bytes = kMegabyte / 4, .segment_bytes = 1 * kMegabyte},
              {.source = source, .rounding = 4096}}};
}

Allocator& CudaAllocatorOf(int32_t device) {
  const Devices& devices = TheDevices();
  SKIFF_ENFORCE(devices.status == cudaSuccess, kFailedPrecondition, "place cuda:", device,
                ": no CUDA devices (", cudaGetErrorString(devices.status), ")");
  SKIFF_ENFORCE(device >= 0 && device < static_cast<int32_t>(devices.allocators.size()),
                kFailedPrecondition, "place cuda:", device, ": ",
                CountText(devices.allocators.size()));
  return *devices.allocators[static_cast<size_t>(device)];
}

Allocator& CudaPinnedAllocator() {
  const Devices& devices = TheDevices();
  SKIFF_ENFORCE(devices.status == cudaSuccess, kFailedPrecondition,
                "pinned memory: no CUDA devices (", cudaGetErrorString(devices.status), ")");
  static CachingAllocator& allocator =
      *new CachingAllocator(PinnedCachingOptions(), MakeCudaEvents(-1));
  return allocator;
}

}  // namespace skiff
