// Segments that grow: many addresses, behind which memory is mapped chunk by chunk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "memory/segment_source.h"

namespace skiff {

// What a driver offers for it. Sizes are multiples of granularity(), in bytes. What gives a bool or
// a pointer says by false or nullptr that it failed, and failure() says why.
class VirtualMemory {
 public:
  virtual ~VirtualMemory() = default;
  virtual int64_t granularity() const = 0;
  virtual void* ReserveAddresses(int64_t bytes) = 0;
  virtual void FreeAddresses(void* begin, int64_t bytes) noexcept = 0;
  // New memory behind addresses. A chunk is unmapped, and its memory given back, as it was mapped.
  virtual bool Map(void* chunk, int64_t bytes) = 0;
  virtual void Unmap(void* chunk, int64_t bytes) noexcept = 0;
  // The device may read and write what is mapped.
  virtual bool Allow(void* begin, int64_t bytes) = 0;
  // Waits until nothing of what the device was given to do runs any more.
  virtual void Synchronize() noexcept = 0;
  virtual std::string failure() const = 0;
};

class VirtualSegmentSource final : public SegmentSource {
 public:
  // Memory comes in chunks of `chunk_bytes`, rounded up to the granularity: the larger, the fewer
  // calls of the driver; the smaller, the less is reserved in vain.
  VirtualSegmentSource(std::shared_ptr<VirtualMemory> memory, int64_t chunk_bytes);

  void* Reserve(int64_t bytes, int64_t alignment) override;
  void Release(void* segment, int64_t bytes) noexcept override;
  int64_t commit_granularity() const override { return chunk_bytes_; }
  // All of the range, or nothing.
  bool Commit(void* begin, int64_t bytes) override;
  // Waits for the device first: it may still use what was freed in the order of its streams.
  void Decommit(void* begin, int64_t bytes) noexcept override;
  bool is_host_memory() const override { return false; }
  std::string failure() const override { return failure_; }

 private:
  void Unmap(char* begin, int64_t bytes) noexcept;

  const std::shared_ptr<VirtualMemory> memory_;
  const int64_t chunk_bytes_;
  std::string failure_;
};

}  // namespace skiff
