#include "framework/comm/gather.h"

#include <cstring>

namespace skiff {
namespace {

// Sends `own` to all ranks, and receives from each the bytes of its counterpart.
void SendToAll(Communicator* communicator, std::string_view own, const std::vector<InMessage>& in) {
  std::vector<OutMessage> out;
  for (const InMessage& message : in) {
    out.push_back(
        {.to = message.from, .data = own.data(), .bytes = static_cast<int64_t>(own.size())});
  }
  communicator->Exchange(out, in, nullptr);
}

}  // namespace

int32_t RankCount(const Communicator* communicator) {
  return communicator == nullptr ? 1 : communicator->world().size;
}

void GatherBytes(Communicator* communicator, const void* own, int64_t bytes, void* all) {
  if (communicator == nullptr) {
    if (bytes > 0) std::memcpy(all, own, bytes);
    return;
  }
  std::vector<InMessage> in;
  for (int32_t rank = 0; rank < communicator->world().size; ++rank) {
    in.push_back({.from = rank, .data = static_cast<char*>(all) + rank * bytes, .bytes = bytes});
  }
  SendToAll(communicator, {static_cast<const char*>(own), static_cast<size_t>(bytes)}, in);
}

std::vector<std::string> GatherTexts(Communicator* communicator, std::string_view text) {
  if (communicator == nullptr) return {std::string(text)};
  const std::vector<int64_t> sizes = GatherNumbers<int64_t>(communicator, text.size());
  std::vector<std::string> texts(sizes.size());
  std::vector<InMessage> in;
  for (int32_t rank = 0; rank < communicator->world().size; ++rank) {
    texts[rank].resize(sizes[rank]);
    in.push_back({.from = rank, .data = texts[rank].data(), .bytes = sizes[rank]});
  }
  SendToAll(communicator, text, in);
  return texts;
}

}  // namespace skiff
