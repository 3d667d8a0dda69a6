#include "framework/training/rank_agreement.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <string_view>

#include "framework/comm/activity_scope.h"
#include "framework/comm/gather.h"

namespace skiff::training {
namespace {

// Ends a text among other texts. Names, values and messages hold no such byte.
constexpr char kEnd = '\0';

std::string Packed(const RankFacts& facts) {
  std::string packed;
  for (const auto& [name, value] : facts) packed += name + kEnd + value + kEnd;
  return packed;
}

std::vector<std::string> Parts(std::string_view text, char end) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    parts.emplace_back(text.substr(0, text.find(end)));
    text.remove_prefix(std::min(text.size(), parts.back().size() + 1));
  }
  return parts;
}

RankFacts Facts(const std::string& packed) {
  const std::vector<std::string> texts = Parts(packed, kEnd);
  RankFacts facts;
  for (size_t i = 0; i + 1 < texts.size(); i += 2) facts.emplace_back(texts[i], texts[i + 1]);
  return facts;
}

const std::string* Find(const RankFacts& facts, const std::string& name) {
  const auto found = std::ranges::find(facts, name, &RankFacts::value_type::first);
  return found == facts.end() ? nullptr : &found->second;
}

// Returns the place where two values of several lines differ.
std::string DifferenceOfLines(const std::string& rank, const std::string& name,
                              const std::vector<std::string>& lines,
                              const std::vector<std::string>& expected) {
  const auto [line, expected_line] = std::ranges::mismatch(lines, expected);
  const auto text = [](const auto& found, const std::vector<std::string>& all) {
    return found == all.end() ? "missing" : StrCat("\"", *found, "\"");
  };
  return StrCat(rank, ": line ", line - lines.begin() + 1, " of ", name, " is ", text(line, lines),
                ", rank 0: ", text(expected_line, expected));
}

std::string Difference(const std::string& rank, const std::string& name, const std::string* value,
                       const std::string* expected) {
  const auto text = [](const std::string* one) {
    if (one == nullptr) return std::string("not there");
    return one->empty() ? "\"\"" : *one;
  };
  const bool is_short =
      value == nullptr || expected == nullptr ||
      (value->find('\n') == std::string::npos && expected->find('\n') == std::string::npos);
  if (is_short) return StrCat(rank, ": ", name, " is ", text(value), ", rank 0: ", text(expected));
  return DifferenceOfLines(rank, name, Parts(*value, '\n'), Parts(*expected, '\n'));
}

std::string FirstDifference(const std::string& rank, const RankFacts& facts,
                            const RankFacts& expected) {
  RankFacts all = expected;
  all.insert(all.end(), facts.begin(), facts.end());
  for (const auto& [name, ignored] : all) {
    const std::string* value = Find(facts, name);
    const std::string* first = Find(expected, name);
    const bool is_equal = value != nullptr && first != nullptr && *value == *first;
    if (!is_equal) return Difference(rank, name, value, first);
  }
  return StrCat(rank, " runs another build than rank 0");
}

}  // namespace

void CheckEqualOnRanks(Communicator* communicator, const RankFacts& facts) {
  if (communicator == nullptr) return;
  const std::string activity = "the comparison of the ranks";
  const ActivityScope scope(communicator, &activity);
  const std::string packed = Packed(facts);
  const std::vector<uint64_t> hashes = GatherNumbers<uint64_t>(
      communicator, static_cast<uint64_t>(std::hash<std::string>()(packed)));
  const auto other =
      std::ranges::find_if(hashes, [&](const uint64_t hash) { return hash != hashes.front(); });
  if (other == hashes.end()) return;
  // Only the two ranks that are compared send their facts, which may be as long as programs.
  const auto differing = static_cast<int32_t>(other - hashes.begin());
  const World& world = communicator->world();
  const bool is_compared = world.rank == 0 || world.rank == differing;
  const std::vector<std::string> all = GatherTexts(communicator, is_compared ? packed : "");
  const std::vector<std::string> ranks = GatherTexts(communicator, world.Text());
  throw AgreedError(ErrorCode::kFailedPrecondition,
                    FirstDifference(ranks[differing], Facts(all[differing]), Facts(all[0])));
}

void DoOnRanks(Communicator* communicator, const std::function<void()>& work) {
  if (communicator == nullptr) return work();
  std::optional<Error> error;
  try {
    work();
  } catch (const Error& thrown) {
    error = thrown;
  } catch (const std::bad_alloc&) {
    error = Error(ErrorCode::kResourceExhausted, "out of memory");
  } catch (const std::exception& thrown) {
    error = Error(ErrorCode::kFailedPrecondition, thrown.what());
  }
  const std::string activity = "the agreement that all ranks go on";
  const ActivityScope scope(communicator, &activity);
  // -1: no Error.
  const std::vector<int32_t> codes =
      GatherNumbers<int32_t>(communicator, error ? static_cast<int32_t>(error->code()) : -1);
  const auto found = std::ranges::find_if(codes, [](const int32_t code) { return code != -1; });
  if (found == codes.end()) return;
  const auto failed = static_cast<size_t>(found - codes.begin());
  const std::vector<std::string> messages = GatherTexts(communicator, error ? error->what() : "");
  const std::vector<std::string> ranks = GatherTexts(communicator, communicator->world().Text());
  const std::string& message = messages[failed];
  const bool is_of_all = std::ranges::count(messages, message) == std::ssize(messages);
  throw AgreedError(static_cast<ErrorCode>(codes[failed]),
                    is_of_all ? message : StrCat(ranks[failed], ": ", message));
}

void AbortRanks(Communicator* communicator, const std::string& message) noexcept {
  if (communicator == nullptr) return;
  try {
    communicator->Check();
  } catch (...) {
    return;
  }
  communicator->Abort(message);
}

}  // namespace skiff::training
