// A linear-chain conditional random field: sums over all sequences of tags, in float64.
//
// A sequence of rows x_k, numbers for each tag, gives a sequence of tags y the score
//   start[y_0] + sum of x_k[y_k] + sum of step[y_(k-1), y_k] + stop[y_last]
// where rows 0 and 1 of the transitions are start and stop, and the others step.
//
// Vectors of the tags are kept as logarithms that are normalized row by row, so neither long
// sequences nor large scores overflow.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace skiff {

// Returns log sum of exp(value_of(i)), i < count. Minus infinities count as 0, also if all are.
template <typename ValueOf>
constexpr double LogSumExp(int64_t count, const ValueOf& value_of) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < count; ++i) largest = value_of(i) > largest ? value_of(i) : largest;
  if (largest == -std::numeric_limits<double>::infinity()) largest = 0;
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::exp(value_of(i) - largest);
  return largest + std::log(sum);
}

// The transitions between `tags` tags, in the form that sums need.
class CrfTransitions {
 public:
  static int64_t NumbersOf(int64_t tags) { return (2 * tags + 3) * tags; }

  // `transition` is [tags + 2, tags]. `numbers` has room for NumbersOf(tags) and must outlive the
  // object.
  template <typename T>
  CrfTransitions(const T* transition, int64_t tags, double* numbers)
      : tags_(tags), numbers_(numbers) {
    for (int64_t i = 0; i < (tags + 2) * tags; ++i) numbers[i] = transition[i];
    MakeFactors();
  }

  int64_t tags() const { return tags_; }
  double Start(int64_t tag) const { return numbers_[tag]; }
  double Stop(int64_t tag) const { return numbers_[tags_ + tag]; }
  double Step(int64_t from, int64_t to) const { return numbers_[(from + 2) * tags_ + to]; }

  // What a row takes from the row before it.
  struct Sums {
    double* powers;  // exp(before[j])
    double* sums;    // of tag i: sum over j of powers[j] * exp(Step(j, i) - its column's maximum)
    double* logs;    // log sum over j of exp(before[j] + Step(j, i))
  };
  // `before` are normalized logarithms.
  void SumSteps(const double* before, const Sums& to) const;

  // Adds scale times the probability of each step to `steps`, [tags, tags], and sets `earlier` to
  // the probabilities of the tags of a row, of which `before` are the logarithms and `sums` the
  // sums, if `later` has those of the next row. `later` is overwritten.
  void SpreadBack(const double* before, const Sums& sums, double scale, double* later,
                  double* earlier, double* steps) const;

 private:
  void MakeFactors();
  double* base() const { return numbers_ + (tags_ + 2) * tags_; }
  double* factors() const { return base() + tags_; }

  int64_t tags_;
  // The transitions; the maximum of each column of the steps; exp(step - that maximum).
  double* numbers_;
};

}  // namespace skiff
