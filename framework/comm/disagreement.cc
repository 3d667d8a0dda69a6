#include "framework/comm/disagreement.h"

#include <algorithm>
#include <functional>
#include <sstream>
#include <vector>

#include "framework/base/str_cat.h"
#include "framework/comm/gather.h"

namespace skiff {
namespace {

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

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
