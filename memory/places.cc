#include "memory/places.h"

#include <map>
#include <mutex>
#include <utility>

#include "framework/base/error.h"
#include "memory/cpu_allocator.h"
#include "memory/cuda_device.h"

namespace skiff {
namespace {

struct AddedDevices {
  std::mutex mutex;
  std::map<int32_t, std::unique_ptr<Device>> by_index;
};

// Never destroyed: buffers in static variables may outlive everything else.
AddedDevices& Added() {
  static auto* added = new AddedDevices;
  return *added;
}

}  // namespace

Allocator& AllocatorOf(Place place) {
  if (place.is_cpu()) {
    SKIFF_ENFORCE(place.index == 0, kInvalidArgument, "there is no place cpu:", place.index);
    return CpuAllocator();
  }
  return DeviceOf(place).allocator();
}

Device& DeviceOf(Place place) {
  SKIFF_ENFORCE(!place.is_cpu(), kInvalidArgument, "place ", place, ": expected a device");
  AddedDevices& added = Added();
  {
    const std::lock_guard lock(added.mutex);
    const auto found = added.by_index.find(place.index);
    if (found != added.by_index.end()) return *found->second;
  }
  return CudaDeviceOf(place.index);
}

DeviceUse UsePlace(Place place) { return DeviceUse(place.is_cpu() ? nullptr : &DeviceOf(place)); }

void AddDevice(Place place, std::unique_ptr<Device> device) {
  SKIFF_ENFORCE(!place.is_cpu(), kInvalidArgument, "place ", place, ": expected a device");
  AddedDevices& added = Added();
  const std::lock_guard lock(added.mutex);
  const bool is_new = added.by_index.emplace(place.index, std::move(device)).second;
  SKIFF_ENFORCE(is_new, kAlreadyExists, "place ", place, ": a device was added before");
}

void CopyBytes(void* to, Place to_place, const void* from, Place from_place, size_t bytes) {
  DeviceOf(to_place.is_cpu() ? from_place : to_place)
      .CopyNow(to, to_place, from, from_place, bytes);
}

}  // namespace skiff
