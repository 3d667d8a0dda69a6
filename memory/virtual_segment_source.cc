#include "memory/virtual_segment_source.h"

#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"

namespace skiff {

VirtualSegmentSource::VirtualSegmentSource(std::shared_ptr<VirtualMemory> memory,
                                           int64_t chunk_bytes)
    : memory_(std::move(memory)), chunk_bytes_(RoundUp(chunk_bytes, memory_->granularity())) {}

void* VirtualSegmentSource::Reserve(int64_t bytes, int64_t alignment) {
  // Address ranges begin at multiples of the granularity only.
  SKIFF_ENFORCE(memory_->granularity() % alignment == 0, kInvalidArgument,
                "segment at a multiple of ", alignment, " bytes: expected a divisor of ",
                memory_->granularity());
  void* segment = memory_->ReserveAddresses(bytes);
  if (segment == nullptr) failure_ = memory_->failure();
  return segment;
}

void VirtualSegmentSource::Release(void* segment, int64_t bytes) noexcept {
  memory_->FreeAddresses(segment, bytes);
}

bool VirtualSegmentSource::Commit(void* begin, int64_t bytes) {
  char* address = static_cast<char*>(begin);
  int64_t mapped = 0;
  while (mapped < bytes && memory_->Map(address + mapped, chunk_bytes_)) mapped += chunk_bytes_;
  if (mapped == bytes && memory_->Allow(address, bytes)) return true;
  // Read before Unmap, which may replace the driver's reason.
  failure_ = memory_->failure();
  Unmap(address, mapped);
  return false;
}

void VirtualSegmentSource::Decommit(void* begin, int64_t bytes) noexcept {
  memory_->Synchronize();
  Unmap(static_cast<char*>(begin), bytes);
}

void VirtualSegmentSource::Unmap(char* begin, int64_t bytes) noexcept {
  for (int64_t i = 0; i < bytes; i += chunk_bytes_) memory_->Unmap(begin + i, chunk_bytes_);
}

}  // namespace skiff
