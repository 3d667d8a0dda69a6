#include "framework/training/rank_agreement.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <string_view>

#include "framework/comm/activity_scope.h"
#include "framework/comm/disagreement.h"
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

std::vector<std::string> Unpacked(std::string_view packed) {
  std::vector<std::string> texts;
  while (!packed.empty()) {
    texts.emplace_back(packed.substr(0, packed.find(kEnd)));
    packed.remove_prefix(std::min(packed.size(), texts.back().size() + 1));
  }
  return texts;
}

RankFacts Facts(const std::string& packed) {
  const std::vector<std::string> texts = Unpacked(packed);
  RankFacts facts;
  for (size_t i = 0; i + 1 < texts.size(); i += 2) facts.emplace_back(texts[i], texts[i + 1]);
  return facts;
}

const std::string* Find(const RankFacts& facts, const std::string& name) {
  const auto found = std::ranges::find(facts, name, &RankFacts::value_type::first);
  return found == facts.end() ? nullptr : &found->second;
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
  const LineDifference first = FirstDifferentLine(*value, *expected);
  return StrCat(rank, ": line ", first.line + 1, " of ", name, " is ", first.found,
                ", rank 0: ", first.expected);
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

// Names what the ranks do, unless a caller has.
class NamedWork {
 public:
  NamedWork(Communicator* communicator, std::string name)
      : name_(std::move(name)),
        scope_(communicator,
               communicator->activity() == nullptr ? &name_ : communicator->activity()) {}

 private:
  const std::string name_;
  const ActivityScope scope_;
};

}  // namespace

void CheckEqualOnRanks(Communicator* communicator, const RankFacts& facts) {
  if (communicator == nullptr) return;
  const NamedWork named(communicator, "the comparison of the ranks");
  const std::optional<Disagreement> found = FindDisagreement(communicator, Packed(facts));
  if (!found) return;
  throw AgreedError(ErrorCode::kFailedPrecondition,
                    FirstDifference(found->rank, Facts(found->text), Facts(found->of_first)));
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
  const NamedWork named(communicator, "the agreement that all ranks go on");
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
