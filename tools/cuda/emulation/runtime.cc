// The CUDA runtime's functions that Skiff calls, but for streams.cc and driver.cc. Another one
// doesn't link until it is added.
#include <cuda_runtime.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/cuda/emulation/block.h"
#include "tools/cuda/emulation/devices.h"
#include "tools/cuda/emulation/failures.h"
#include "tools/cuda/emulation/memory.h"
#include "tools/cuda/emulation/streams.h"

namespace skiff::cuda_emulation {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

// Of the failure that the thread was told last, for cudaGetErrorString.
std::string& FailureText() {
  thread_local std::string text = "kernel failed";
  return text;
}

cudaError_t Remember(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

// Of a call that has waited. A device would give the same error for all that follows.
cudaError_t AfterWait() {
  std::string failure = TakeFailure();
  if (failure.empty()) return cudaSuccess;
  FailureText() = std::move(failure);
  return Remember(cudaErrorLaunchFailure);
}

// Page-locked memory of the host.
struct PinnedRange {
  size_t bytes;
  int device;  // the only one that may copy to and from it; -1: any (cudaHostAllocPortable)
};

struct PinnedMemory {
  std::mutex mutex;
  std::map<uintptr_t, PinnedRange> ranges;  // by begin
};

PinnedMemory& Pinned() {
  static auto& pinned = *new PinnedMemory;
  return pinned;
}

// Returns the page-locked memory that has the address, if any has.
std::optional<PinnedRange> FindPinned(const void* address) {
  PinnedMemory& pinned = Pinned();
  const std::lock_guard lock(pinned.mutex);
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto behind = pinned.ranges.upper_bound(at);
  if (behind == pinned.ranges.begin()) return std::nullopt;
  const auto& [begin, range] = *std::prev(behind);
  return at < begin + range.bytes ? std::optional(range) : std::nullopt;
}

// Whether the bytes are where the kind of copy says, and the current device may copy them.
bool IsCopyable(const void* address, size_t bytes, bool may_be_device, bool may_be_host) {
  DeviceMemory& memory = DeviceMemory::Get();
  if (memory.IsOfDevice(address)) {
    return may_be_device && memory.Holds(CurrentDevice(), address, bytes);
  }
  const std::optional<PinnedRange> pinned = FindPinned(address);
  return may_be_host && address != nullptr &&
         (!pinned || pinned->device < 0 || pinned->device == CurrentDevice());
}

cudaError_t Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream,
                 bool waits) {
  if (bytes == 0) return cudaSuccess;
  const bool is_any = kind == cudaMemcpyDefault;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  if (!IsCopyable(from, bytes, is_any || from_device, is_any || !from_device) ||
      !IsCopyable(to, bytes, is_any || to_device, is_any || !to_device)) {
    return Remember(cudaErrorInvalidValue);
  }
  const DeviceMemory& memory = DeviceMemory::Get();
  const auto is_pageable = [&](const void* address) {
    return !memory.IsOfDevice(address) && !FindPinned(address);
  };
  if (waits) {
    if (const cudaError_t error = CheckNotCaptured(stream); error != cudaSuccess) {
      return Remember(error);
    }
  }
  cudaError_t error = cudaSuccess;
  if (!waits && is_pageable(from)) {
    // It may change as soon as the call is back.
    const auto* begin = static_cast<const char*>(from);
    error = Give(stream,
                 [always = memory.Always(to), copied = std::vector<char>(begin, begin + bytes)] {
                   std::memcpy(always, copied.data(), copied.size());
                 });
  } else {
    const Work copy = [=, always_to = memory.Always(to), always_from = memory.Always(from)] {
      std::memmove(always_to, always_from, bytes);
    };
    if (waits && DoAtOnce(stream, copy)) return AfterWait();
    error = Give(stream, copy);
  }
  if (error != cudaSuccess) return Remember(error);
  if (!waits) return cudaSuccess;
  WaitForStream(stream);
  return AfterWait();
}

cudaError_t Set(void* to, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (!IsCopyable(to, bytes, true, false)) return Remember(cudaErrorInvalidValue);
  return Remember(Give(
      stream, [=, always = DeviceMemory::Get().Always(to)] { std::memset(always, value, bytes); }));
}

}  // namespace

void GiveToStream(const KernelCall& call) {
  const auto [grid, block, shared_bytes, stream] = call.shape;
  constexpr unsigned kMost = 65535;
  const bool is_possible = grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= 0x7FFFFFFF &&
                           grid.y <= kMost && grid.z <= kMost && block.x > 0 && block.y > 0 &&
                           block.z > 0 && block.z <= 64 &&
                           uint64_t{block.x} * block.y * block.z <= 1024;
  if (!is_possible) {
    Remember(cudaErrorInvalidConfiguration);
  } else if (shared_bytes > size_t{48} << 10) {
    Remember(cudaErrorInvalidValue);
  } else {
    Remember(Give(stream, [call, device = CurrentDevice()] {
      DeviceMemory::Get().Open();
      RunLaunch(call, device);
    }));
  }
}

}  // namespace skiff::cuda_emulation

using namespace skiff::cuda_emulation;  // NOLINT: what follows is CUDA's

// ---- errors

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorNotPermitted:
      return "operation not permitted";
    case cudaErrorLaunchFailure:
      return FailureText().c_str();
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    default:
      return "an error of the CUDA runtime";
  }
}

// ---- devices

cudaError_t cudaGetDeviceCount(int* count) {
  *count = DeviceCount();
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = CurrentDevice();
  return IsInHostFunction() ? cudaErrorNotPermitted : cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (IsInHostFunction()) return cudaErrorNotPermitted;
  return SetCurrentDevice(device) ? cudaSuccess : Remember(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= DeviceCount()) return Remember(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, "emulated");
  properties->major = 9;
  properties->totalGlobalMem = DeviceMemory::Get().total_bytes();
  properties->multiProcessorCount = 132;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->regsPerBlock = 65536;
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerBlockOptin = 227 << 10;
  properties->l2CacheSize = 50 << 20;
  properties->concurrentKernels = 1;
  properties->unifiedAddressing = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = CheckMayCallUnsafely(); error != cudaSuccess) {
    return Remember(error);
  }
  WaitForDevice(CurrentDevice());
  return AfterWait();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (IsInHostFunction()) return cudaErrorNotPermitted;
  if (const cudaError_t error = CheckNotCaptured(stream); error != cudaSuccess) {
    return Remember(error);
  }
  WaitForStream(stream);
  return AfterWait();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (IsInHostFunction()) return cudaErrorNotPermitted;
  WaitForEvent(event);
  return AfterWait();
}

// ---- memory

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = nullptr;
  if (const cudaError_t error = CheckMayCallUnsafely(); error != cudaSuccess) {
    return Remember(error);
  }
  if (bytes == 0) return cudaSuccess;
  *memory = DeviceMemory::Get().Allocate(CurrentDevice(), bytes);
  return *memory == nullptr ? Remember(cudaErrorMemoryAllocation) : cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  if (const cudaError_t error = CheckMayCallUnsafely(); error != cudaSuccess) {
    return Remember(error);
  }
  if (memory == nullptr) return cudaSuccess;
  if (!DeviceMemory::Get().IsOfDevice(memory)) return Remember(cudaErrorInvalidValue);
  WaitForDevice(DeviceMemory::Get().DeviceOf(memory));
  return DeviceMemory::Get().Free(memory) ? cudaSuccess : Remember(cudaErrorInvalidValue);
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned flags) {
  *memory = nullptr;
  if (const cudaError_t error = CheckMayCallUnsafely(); error != cudaSuccess) {
    return Remember(error);
  }
  constexpr size_t kPage = 4096;
  *memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (*memory == nullptr) return Remember(cudaErrorMemoryAllocation);
  const std::lock_guard lock(Pinned().mutex);
  const int device = (flags & cudaHostAllocPortable) != 0 ? -1 : CurrentDevice();
  Pinned().ranges[reinterpret_cast<uintptr_t>(*memory)] = {bytes, device};
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  if (const cudaError_t error = CheckMayCallUnsafely(); error != cudaSuccess) {
    return Remember(error);
  }
  for (int device = 0; device < DeviceCount(); ++device) WaitForDevice(device);
  const std::lock_guard lock(Pinned().mutex);
  if (Pinned().ranges.erase(reinterpret_cast<uintptr_t>(memory)) == 0) {
    return Remember(cudaErrorInvalidValue);
  }
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = DeviceMemory::Get().free_bytes(CurrentDevice());
  *total = DeviceMemory::Get().total_bytes();
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  *attributes = {};
  const bool is_of_device = DeviceMemory::Get().IsOfDevice(pointer);
  attributes->type = is_of_device          ? cudaMemoryTypeDevice
                     : FindPinned(pointer) ? cudaMemoryTypeHost
                                           : cudaMemoryTypeUnregistered;
  if (is_of_device) attributes->device = DeviceMemory::Get().DeviceOf(pointer);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (const cudaError_t error = CheckMayCallUnsafely(); error != cudaSuccess) {
    return Remember(error);
  }
  return Copy(to, from, bytes, kind, nullptr, /*waits=*/true);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return Copy(to, from, bytes, kind, stream, /*waits=*/false);
}

// Other copies than this one are within a device, or to or from the host.
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           size_t bytes) {
  if (const cudaError_t error = CheckMayCallUnsafely(); error != cudaSuccess) {
    return Remember(error);
  }
  if (bytes == 0) return cudaSuccess;
  DeviceMemory& memory = DeviceMemory::Get();
  if (!memory.Holds(to_device, to, bytes) || !memory.Holds(from_device, from, bytes)) {
    return Remember(cudaErrorInvalidValue);
  }
  // It waits for all work of the devices.
  for (const int device : {to_device, from_device}) WaitForDevice(device);
  std::memmove(memory.Always(to), memory.Always(from), bytes);
  return AfterWait();
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) { return Set(to, value, bytes, nullptr); }

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return Set(to, value, bytes, stream);
}
