#include "framework/comm/gather.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <sstream>

#include "framework/base/str_cat.h"

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

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
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

std::optional<Disagreement> FindDisagreement(Communicator* communicator, const std::string& text) {
  const std::vector<uint64_t> hashes =
      GatherNumbers(communicator, static_cast<uint64_t>(std::hash<std::string>()(text)));
  const auto found = std::ranges::find_if(hashes, [&](uint64_t hash) { return hash != hashes[0]; });
  if (found == hashes.end()) return {};
  const auto other = static_cast<size_t>(found - hashes.begin());
  const World& world = communicator->world();
  const bool is_compared = world.rank == 0 || static_cast<size_t>(world.rank) == other;
  const std::vector<std::string> texts = GatherTexts(communicator, is_compared ? text : "");
  const std::vector<std::string> ranks = GatherTexts(communicator, world.Text());
  return Disagreement{.rank = ranks[other], .text = texts[other], .of_first = texts[0]};
}

LineDifference FirstDifferentLine(const std::string& text, const std::string& expected) {
  const std::vector<std::string> lines = LinesOf(text);
  const std::vector<std::string> expected_lines = LinesOf(expected);
  const auto [line, expected_line] = std::ranges::mismatch(lines, expected_lines);
  const auto quoted = [](const auto& found, const std::vector<std::string>& all) {
    return found == all.end() ? "missing" : StrCat("\"", *found, "\"");
  };
  return {.line = line - lines.begin(),
          .found = quoted(line, lines),
          .expected = quoted(expected_line, expected_lines)};
}

}  // namespace skiff
