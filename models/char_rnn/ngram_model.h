// What the last characters alone tell about the next one: a baseline for networks.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace skiff::models {

// Counts characters after contexts of 0 to order - 1 characters. With n counts and the context h,
// which becomes h' without its first character,
//
//   P(c | h) = (n(h c) + strength · P(c | h')) / (n(h) + strength),
//
// and P is 1 / characters below the empty context: each context's counts are smoothed by the
// shorter one's probabilities (MacKay and Peto 1995, "A Hierarchical Dirichlet Language Model").
class NgramModel {
 public:
  // `order`: 2 for bigrams, 3 for trigrams. Throws an Error (kInvalidArgument) unless the order is
  // 1 to 4, there are at most 10,000 characters, the strength is positive, and all ids of the text
  // are in [0, characters).
  NgramModel(int64_t order, int64_t characters, std::span<const int64_t> text,
             double strength = 1.0);

  // Returns P(id | context). Only the last order - 1 characters of the context count; it may have
  // fewer.
  double Probability(std::span<const int64_t> context, int64_t id) const;
  // Returns the mean of -log P of each character of a text but the first, given those before, in
  // nats. Throws an Error (kInvalidArgument) for a text of less than two characters.
  double Loss(std::span<const int64_t> text) const;

 private:
  using Counts = std::unordered_map<uint64_t, int64_t>;  // by KeyOf

  // Of characters that are at most as many as an order - 1.
  uint64_t KeyOf(std::span<const int64_t> ids) const;

  int64_t order_;
  int64_t characters_;
  double strength_;
  // By the length of the context.
  std::vector<Counts> contexts_;   // n(h)
  std::vector<Counts> sequences_;  // n(h c)
};

}  // namespace skiff::models
