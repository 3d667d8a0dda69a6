// Messages of one call of all ranks, drawn from a seed that all ranks know.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/communicator.h"

namespace skiff {

class DrawnExchange {
 public:
  // Of `size` ranks; messages have up to `most_bytes` bytes, and some have none.
  DrawnExchange(int32_t size, int64_t most_bytes, uint64_t seed);

  // Sends and receives the messages of a rank. Returns whether all bytes have arrived.
  bool Run(Communicator* own) const;
  // Returns the bytes that a rank sends to other ranks.
  int64_t BytesToOthers(int32_t rank) const;

 private:
  std::vector<uint8_t> Contents(int32_t from, int32_t to) const;

  const uint64_t seed_;
  std::vector<std::vector<int64_t>> bytes_;  // [sender][receiver]; -1: no message
};

}  // namespace skiff
