// This rank among all ranks, and the messages of an exchange between them, collected before they go
// out.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/comm/world.h"
#include "framework/op/kernel.h"

namespace skiff {

// Returns this rank among all ranks: rank 0 of 1 without a communicator.
const World& WorldOf(const KernelContext& run);

class Messages {
 public:
  void Send(int32_t to, const void* data, int64_t bytes) {
    out_.push_back({.to = to, .data = data, .bytes = bytes});
  }
  void Receive(int32_t from, void* data, int64_t bytes) {
    in_.push_back({.from = from, .data = data, .bytes = bytes});
  }
  // Exchanges the messages, and forgets them. On a device, it appends the work to the stream.
  // Throws what Communicator::Exchange throws.
  void Exchange(const KernelContext& run);

 private:
  // They keep their memory from run to run.
  std::vector<OutMessage> out_;
  std::vector<InMessage> in_;
};

}  // namespace skiff
