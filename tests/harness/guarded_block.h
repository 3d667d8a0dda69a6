// Memory with guard zones before and after it. guards_are_intact() reveals a write out of bounds; a
// read out of bounds gives NaN, which shows in the results.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/tensor/tensor.h"
#include "memory/allocator.h"

namespace skiff::harness {

class GuardedBlock {
 public:
  // Throws Error for a place that this machine lacks.
  explicit GuardedBlock(int64_t bytes, Place place = Place::Cpu());

  // 64-byte aligned, and not nullptr even for 0 bytes.
  void* data() const;
  int64_t bytes() const { return bytes_; }
  // The memory that holds the block, and the block's offset in it, to make a Tensor.
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  int64_t offset_bytes() const;

  // Fills the block with a byte.
  void Fill(unsigned char byte);
  bool guards_are_intact() const;

 private:
  int64_t bytes_;
  std::shared_ptr<Buffer> buffer_;
};

}  // namespace skiff::harness
