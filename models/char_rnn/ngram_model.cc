#include "models/char_rnn/ngram_model.h"

#include <algorithm>
#include <cmath>

#include "framework/base/error.h"

namespace skiff::models {
namespace {

// Four ids below this make a key of 64 bits.
constexpr int64_t kMostCharacters = 10'000;
constexpr int64_t kMostOrder = 4;

int64_t CountIn(const std::unordered_map<uint64_t, int64_t>& counts, uint64_t key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

NgramModel::NgramModel(int64_t order, int64_t characters, std::span<const int64_t> text,
                       double strength)
    : order_(order), characters_(characters), strength_(strength) {
  SKIFF_ENFORCE(order >= 1 && order <= kMostOrder, kInvalidArgument,
                "n-gram model: order = ", order, ", expected 1 to ", kMostOrder);
  SKIFF_ENFORCE(characters >= 1 && characters <= kMostCharacters, kInvalidArgument,
                "n-gram model: ", characters, " characters, expected 1 to ", kMostCharacters);
  SKIFF_ENFORCE(strength > 0, kInvalidArgument, "n-gram model: strength = ", strength,
                ", expected a positive number");
  for (const int64_t id : text) {
    SKIFF_ENFORCE(id >= 0 && id < characters, kInvalidArgument, "n-gram model: id ", id,
                  ", expected 0 to ", characters - 1);
  }
  contexts_.resize(static_cast<size_t>(order));
  sequences_.resize(static_cast<size_t>(order));
  for (size_t length = 0; length < contexts_.size(); ++length) {
    for (size_t i = length; i < text.size(); ++i) {
      ++contexts_[length][KeyOf(text.subspan(i - length, length))];
      ++sequences_[length][KeyOf(text.subspan(i - length, length + 1))];
    }
  }
}

uint64_t NgramModel::KeyOf(std::span<const int64_t> ids) const {
  uint64_t key = 0;
  for (const int64_t id : ids)
    key = key * static_cast<uint64_t>(characters_) + static_cast<uint64_t>(id);
  return key;
}

double NgramModel::Probability(std::span<const int64_t> context, int64_t id) const {
  double probability = 1.0 / static_cast<double>(characters_);
  const size_t longest = std::min(context.size(), static_cast<size_t>(order_ - 1));
  for (size_t length = 0; length <= longest; ++length) {
    const uint64_t key = KeyOf(context.last(length));
    const uint64_t sequence = key * static_cast<uint64_t>(characters_) + static_cast<uint64_t>(id);
    probability =
        (static_cast<double>(CountIn(sequences_[length], sequence)) + strength_ * probability) /
        (static_cast<double>(CountIn(contexts_[length], key)) + strength_);
  }
  return probability;
}

double NgramModel::Loss(std::span<const int64_t> text) const {
  SKIFF_ENFORCE(text.size() >= 2, kInvalidArgument, "n-gram model: a text of ", text.size(),
                " characters, expected at least 2");
  double sum = 0;
  for (size_t i = 1; i < text.size(); ++i) sum -= std::log(Probability(text.first(i), text[i]));
  return sum / static_cast<double>(text.size() - 1);
}

}  // namespace skiff::models
