// Segments that grow: large address ranges to which memory is mapped chunk by chunk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "memory/segment_source.h"

namespace skiff {

// The functions of a driver for virtual memory. Sizes are in bytes, and multiples of granularity().
// Functions that return a bool or a pointer report failure as false or nullptr; failure() then says
// why.
class VirtualMemory {
 public:
  virtual ~VirtualMemory() = default;
  virtual int64_t granularity() const = 0;
  virtual void* ReserveAddresses(int64_t bytes) = 0;
  virtual void FreeAddresses(void* begin, int64_t bytes) noexcept = 0;
  // Maps new memory to addresses. Unmap gets the same chunk in one piece, and frees the memory.
  virtual bool Map(void* chunk, int64_t bytes) = 0;
  virtual void Unmap(void* chunk, int64_t bytes) noexcept = 0;
  // Lets the device read and write mapped memory.
  virtual bool Allow(void* begin, int64_t bytes) = 0;
  // Waits until the device has done all its work.
  virtual void Synchronize() noexcept = 0;
  virtual std::string failure() const = 0;
};

class VirtualSegmentSource final : public SegmentSource {
 public:
  // Maps memory in chunks of `chunk_bytes`, rounded up to the granularity. Larger chunks mean fewer
  // driver calls; smaller ones waste less memory.
  VirtualSegmentSource(std::shared_ptr<VirtualMemory> memory, int64_t chunk_bytes);

  void* Reserve(int64_t bytes, int64_t alignment) override;
  void Release(void* segment, int64_t bytes) noexcept override;
  int64_t commit_granularity() const override { return chunk_bytes_; }
  // Maps the whole range or nothing.
  bool Commit(void* begin, int64_t bytes) override;
  // Waits for the device first, which may still use blocks that were freed in the order of its
  // streams.
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
