#include "memory/allocator.h"

#include "framework/base/error.h"
#include "memory/cpu_allocator.h"
#include "memory/device.h"

namespace skiff {

Allocator& AllocatorOf(Place place) {
  if (place.is_cpu()) {
    SKIFF_ENFORCE(place.index == 0, kInvalidArgument, "there is no place cpu:", place.index);
    return CpuAllocator();
  }
  return DeviceOf(place).allocator();
}

Buffer::Buffer(Allocator& allocator, int64_t bytes, const AllocationOptions& options)
    : allocator_(&allocator),
      data_(allocator.Allocate(bytes, options)),
      bytes_(bytes),
      place_(allocator.place()),
      tag_(options.tag) {}

Buffer::Buffer(void* borrowed, int64_t bytes, Place place)
    : allocator_(nullptr), data_(borrowed), bytes_(bytes), place_(place), tag_(MemoryTag::kOther) {}

Buffer::~Buffer() {
  if (allocator_ != nullptr) allocator_->Free(data_, bytes_);
}

void Buffer::RecordUse(void* stream) {
  if (allocator_ != nullptr) allocator_->RecordUse(data_, stream);
}

}  // namespace skiff
