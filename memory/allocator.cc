#include "memory/allocator.h"

#include <limits>
#include <utility>

#include "framework/base/error.h"

namespace skiff {
namespace {

thread_local int64_t most_bytes = std::numeric_limits<int64_t>::max();

void* AllocateWithin(Allocator& allocator, int64_t bytes, const AllocationOptions& options) {
  SKIFF_ENFORCE(bytes <= most_bytes, kUnimplemented, "a buffer of ", bytes,
                " bytes, expected at most ", most_bytes);
  return allocator.Allocate(bytes, options);
}

}  // namespace

BufferLimit::BufferLimit(int64_t bytes) : outer_(std::exchange(most_bytes, bytes)) {}

BufferLimit::~BufferLimit() { most_bytes = outer_; }

Buffer::Buffer(Allocator& allocator, int64_t bytes, const AllocationOptions& options)
    : allocator_(&allocator),
      data_(AllocateWithin(allocator, bytes, options)),
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
