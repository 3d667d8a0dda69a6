// Naive references of linear-chain conditional random fields: every sequence of tags one by one if
// there are few, else sums of logarithms, row by row.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {

using Path = std::vector<size_t>;

// Sequence i of ragged rows or, with `lengths`, of padded ones.
inline std::vector<Rows> TaggedSequences(const Array& x, const Array* lengths) {
  if (lengths == nullptr) return SequencesOf(x);
  const auto padded = static_cast<size_t>(x.shape[1]);
  Array flat = x;
  flat.shape = {x.shape[0] * x.shape[1], x.shape.rank() > 2 ? x.shape[2] : 1};
  const Rows rows = RowsOf(flat);
  std::vector<Rows> sequences;
  for (size_t i = 0; i < lengths->values.size(); ++i) {
    const auto begin = rows.begin() + static_cast<int64_t>(i * padded);
    sequences.emplace_back(begin, begin + static_cast<int64_t>(lengths->values[i]));
  }
  return sequences;
}

// Puts the rows of sequences where TaggedSequences finds them; zeros in the padding.
inline Array WithTaggedSequences(Array like, const std::vector<Rows>& sequences, bool is_padded) {
  const size_t count = like.values.size();
  like.values.assign(count, 0);
  const auto width =
      sequences.empty() || count == 0 ? 1 : static_cast<size_t>(like.shape[like.shape.rank() - 1]);
  size_t at = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (is_padded) at = i * static_cast<size_t>(like.shape[1]) * width;
    for (const Row& row : sequences[i]) {
      for (const double value : row) like.values[at++] = value;
    }
  }
  return like;
}

inline double ScoreOf(const Rows& emission, const Rows& transition, const Path& path) {
  double score = transition[0][path.front()] + transition[1][path.back()];
  for (size_t k = 0; k < path.size(); ++k) {
    score += emission[k][path[k]];
    if (k > 0) score += transition[path[k - 1] + 2][path[k]];
  }
  return score;
}

inline double LogOfSum(const Row& logs) {
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - largest);
  return largest + std::log(sum);
}

// Whether every path is looked at.
inline bool HasFewPaths(const Rows& emission) {
  return std::pow(static_cast<double>(emission[0].size()), static_cast<double>(emission.size())) <
         5000;
}

// Calls visit(path) for all of them, in ascending order.
template <typename Visit>
void ForEachPath(const Rows& emission, const Visit& visit) {
  Path path(emission.size(), 0);
  for (;;) {
    visit(path);
    size_t k = path.size();
    while (k > 0 && path[k - 1] + 1 == emission[0].size()) path[--k] = 0;
    if (k == 0) return;
    ++path[k - 1];
  }
}

// combine(scores) over the paths that end with each tag of the last row, without stop.
template <typename Combine>
Row CombinedScores(const Rows& emission, const Rows& transition, const Combine& combine) {
  const size_t tags = emission[0].size();
  Row now(tags);
  for (size_t i = 0; i < tags; ++i) now[i] = transition[0][i] + emission[0][i];
  for (size_t k = 1; k < emission.size(); ++k) {
    const Row before = now;
    for (size_t i = 0; i < tags; ++i) {
      Row scores;
      for (size_t j = 0; j < tags; ++j) scores.push_back(before[j] + transition[j + 2][i]);
      now[i] = combine(scores) + emission[k][i];
    }
  }
  return now;
}

// Returns log of the sum of exp(score) over all paths.
inline double LogPartition(const Rows& emission, const Rows& transition) {
  Row scores;
  if (HasFewPaths(emission)) {
    ForEachPath(emission,
                [&](const Path& path) { scores.push_back(ScoreOf(emission, transition, path)); });
    return LogOfSum(scores);
  }
  scores = CombinedScores(emission, transition, LogOfSum);
  for (size_t i = 0; i < scores.size(); ++i) scores[i] += transition[1][i];
  return LogOfSum(scores);
}

// Returns the path of the highest score; of equal ones the one whose last tags are lower.
inline Path BestPath(const Rows& emission, const Rows& transition) {
  // From the end: the best last tag, given it the best before, and so on.
  Path path(emission.size());
  Row stop = transition[1];
  for (size_t k = emission.size(); k-- > 0;) {
    const Rows begin(emission.begin(), emission.begin() + static_cast<int64_t>(k) + 1);
    Row scores = CombinedScores(begin, transition, [](const Row& all) {
      return *std::max_element(all.begin(), all.end());
    });
    for (size_t i = 0; i < scores.size(); ++i) scores[i] += stop[i];
    path[k] = static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    for (size_t j = 0; j < stop.size(); ++j) stop[j] = transition[j + 2][path[k]];
  }
  return path;
}

}  // namespace skiff::harness
