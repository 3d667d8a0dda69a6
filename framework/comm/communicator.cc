#include "framework/comm/communicator.h"

namespace skiff {

std::string Communicator::ActivityText() const {
  return activity_ == nullptr ? "" : " in " + *activity_;
}

void Communicator::CountSent(std::span<const OutMessage> out) {
  for (const OutMessage& message : out) {
    if (message.to != world_.rank) bytes_sent_ += message.bytes;
  }
}

}  // namespace skiff
