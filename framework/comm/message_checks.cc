#include "framework/comm/message_checks.h"

#include <algorithm>
#include <cstring>

#include "framework/base/dtype.h"
#include "framework/base/error.h"

namespace skiff {
namespace {

// One list of messages of a call: the messages to ranks, or the messages from ranks.
class MessageList {
 public:
  MessageList(const World& world, const char* direction)
      : world_(world), direction_(direction), is_there_(world.size) {}

  void Add(int32_t rank, int64_t bytes) {
    SKIFF_ENFORCE(rank >= 0 && rank < world_.size, kInvalidArgument, "message ", direction_,
                  " rank ", rank, ", expected a rank from 0 to ", world_.size - 1);
    SKIFF_ENFORCE(!is_there_[rank], kInvalidArgument, "two messages ", direction_, " rank ", rank,
                  " in one call, expected at most one");
    SKIFF_ENFORCE(bytes >= 0, kInvalidArgument, "message ", direction_, " rank ", rank, " of ",
                  bytes, " bytes, expected at least 0");
    is_there_[rank] = true;
    if (rank == world_.rank) own_bytes_ = bytes;
  }

  // Returns the bytes of the message of the rank to itself; -1 without such a message.
  int64_t own_bytes() const { return own_bytes_; }

 private:
  const World& world_;
  const char* const direction_;
  std::vector<bool> is_there_;
  int64_t own_bytes_ = -1;
};

// Returns "rank 2", "ranks 2, 3", or, of many ranks, the first and how many there are.
std::string RanksText(std::span<const int32_t> ranks) {
  constexpr size_t kMost = 16;
  if (ranks.empty()) return "other ranks";
  const std::string listed = Join(ranks.first(std::min(ranks.size(), kMost)), ", ");
  if (ranks.size() <= kMost) return StrCat(ranks.size() == 1 ? "rank " : "ranks ", listed);
  return StrCat("ranks ", listed, ", … (", ranks.size(), " ranks)");
}

}  // namespace

void CheckMessages(const World& world, std::span<const OutMessage> out,
                   std::span<const InMessage> in) {
  MessageList sent(world, "to");
  for (const OutMessage& message : out) sent.Add(message.to, message.bytes);
  MessageList received(world, "from");
  for (const InMessage& message : in) received.Add(message.from, message.bytes);
  if (sent.own_bytes() == received.own_bytes()) return;
  SKIFF_ENFORCE(sent.own_bytes() >= 0 && received.own_bytes() >= 0, kInvalidArgument, "rank ",
                world.rank, sent.own_bytes() >= 0 ? " sends" : " expects",
                " a message of its own, but doesn't ", sent.own_bytes() >= 0 ? "expect" : "send",
                " it");
  Throw(ErrorCode::kInvalidArgument,
        MismatchText(world.rank, sent.own_bytes(), world.rank, received.own_bytes()));
}

void CopyOwnMessage(const World& world, std::span<const OutMessage> out,
                    std::span<const InMessage> in) {
  const auto sent = std::ranges::find(out, world.rank, &OutMessage::to);
  const auto received = std::ranges::find(in, world.rank, &InMessage::from);
  if (sent == out.end() || received == in.end() || sent->bytes == 0) return;
  std::memcpy(received->data, sent->data, sent->bytes);
}

void CheckNoStream(const DeviceStream* stream) {
  SKIFF_ENFORCE(stream == nullptr, kInvalidArgument,
                "a stream for ranks with memory on the CPU, expected none");
}

void CheckCpuSum(int64_t count, DType dtype, const DeviceStream* stream) {
  CheckNoStream(stream);
  SKIFF_ENFORCE(count >= 0, kInvalidArgument, "sum of ", count, " numbers, expected at least 0");
  SKIFF_ENFORCE(dtype == DType::kFloat32 || dtype == DType::kFloat64, kUnimplemented, "sum of ",
                dtype, " on the CPU, expected float32 or float64");
}

std::string MismatchText(int32_t from, int64_t bytes, int32_t to, int64_t expected) {
  return StrCat("rank ", from, " sends ", bytes, " bytes to rank ", to, ", which expects ",
                expected);
}

std::string TimeLimitText(const World& world, double seconds, std::vector<int32_t> ranks) {
  std::ranges::sort(ranks);
  const auto repeated = std::ranges::unique(ranks);
  ranks.erase(repeated.begin(), repeated.end());
  return StrCat(world.Text(), " has waited ", seconds, " s for ", RanksText(ranks));
}

}  // namespace skiff
