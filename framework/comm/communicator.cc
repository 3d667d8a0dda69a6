#include "framework/comm/communicator.h"

#include <cstdio>

namespace skiff {

std::string Communicator::ActivityText() const {
  return activity_ == nullptr ? "" : " in " + *activity_;
}

void Communicator::Report(const std::string& message) const noexcept {
  std::fprintf(stderr, "%s: %s\n", world_.Text().c_str(), message.c_str());
  std::fflush(stderr);
}

void Communicator::CountSent(std::span<const OutMessage> out) {
  for (const OutMessage& message : out) {
    if (message.to != world_.rank) bytes_sent_ += message.bytes;
  }
}

}  // namespace skiff
