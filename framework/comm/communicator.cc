#include "framework/comm/communicator.h"

namespace skiff {

std::string Communicator::ActivityText() const {
  return activity_ == nullptr ? "" : " in " + *activity_;
}

// Without a stream nobody waits outside of Exchange and Sum, which have the limit.
void Communicator::CheckWait(double /*waited_seconds*/) { Check(); }

void Communicator::CountSent(std::span<const OutMessage> out) {
  for (const OutMessage& message : out) {
    if (message.to != world_.rank) bytes_sent_ += message.bytes;
  }
}

}  // namespace skiff
