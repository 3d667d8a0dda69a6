// The time steps of ragged sequences, all sequences side by side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>

#include "framework/op/kernel.h"
#include "operators/sequence/kernels/sequence_rows.h"
#include "operators/sequence/kernels/wide_and_stored.h"

namespace skiff {

// Sorts sequences by length, the longest first, so that the sequences with rows in a time step are
// the first ones. "Sequence j" is the j-th in this order. In batch order, the rows of the first
// time step come first, the rows of each step in this order; this is the order of Fluid's outputs
// named Batch….
class TimeSteps {
 public:
  // One time step: sequences [0, count) have a row in it. `first` is the position of their first
  // row in batch order.
  struct Step {
    int64_t time;
    int64_t count;
    int64_t first;
  };

  // With `is_reverse`, the first time step has the last rows. `order` has place for a number per
  // sequence.
  TimeSteps(const SequenceRows& sequences, bool is_reverse, int64_t* order)
      : sequences_(sequences),
        is_reverse_(is_reverse),
        order_(order, static_cast<size_t>(sequences.size())) {
    std::iota(order_.begin(), order_.end(), int64_t{0});
    std::sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) {
      const int64_t length_a = sequences_[a].count();
      const int64_t length_b = sequences_[b].count();
      return length_a != length_b ? length_a > length_b : a < b;
    });
  }

  // Returns the index of sequence j in the LoD.
  int64_t Index(int64_t j) const { return order_[static_cast<size_t>(j)]; }
  // Returns the row of sequence j at a time.
  int64_t Row(int64_t j, int64_t time) const {
    const RowRange rows = sequences_[Index(j)];
    return is_reverse_ ? rows.end - 1 - time : rows.begin + time;
  }
  // Returns the state of sequence j before a time: from `states`, which has one per row, or at the
  // first time from `initial`, which has one per sequence in the order of the LoD or is nullptr:
  // then `zeros`.
  template <typename T>
  const T* StateBefore(int64_t j, int64_t time, const T* states, const T* initial, const T* zeros,
                       int64_t width) const {
    if (time > 0) return states + Row(j, time - 1) * width;
    return initial == nullptr ? zeros : initial + Index(j) * width;
  }

  // Copies rows of `width` numbers, one for each sequence in the order of the LoD, to the order of
  // the time steps, in which sequence 0 is the longest one; and the other way round, rounded if T
  // is half.
  template <typename T>
  void ToLongestFirst(const T* rows, int64_t width, T* longest_first) const {
    for (int64_t j = 0; j < sequence_count(); ++j)
      std::copy_n(rows + Index(j) * width, width, longest_first + j * width);
  }
  template <typename T>
  void FromLongestFirst(const WideType<T>* longest_first, int64_t width, T* rows) const {
    for (int64_t j = 0; j < sequence_count(); ++j)
      RoundRow(longest_first + j * width, width, rows + Index(j) * width);
  }

  // Calls body(step) for each time step, from the first one.
  template <typename Body>
  void ForEach(const Body& body) const {
    Step step{0, sequence_count(), 0};
    for (; longest() > step.time; ++step.time) {
      while (Length(step.count - 1) <= step.time) --step.count;
      body(step);
      step.first += step.count;
    }
  }
  // The same from the last one.
  template <typename Body>
  void ForEachBackwards(const Body& body) const {
    if (sequence_count() == 0) return;
    Step step{longest() - 1, 0, sequences_[sequence_count() - 1].end};
    for (; step.time >= 0; --step.time) {
      while (step.count < sequence_count() && Length(step.count) > step.time) ++step.count;
      step.first -= step.count;
      body(step);
    }
  }

 private:
  int64_t sequence_count() const { return sequences_.size(); }
  int64_t Length(int64_t j) const { return sequences_[Index(j)].count(); }
  int64_t longest() const { return sequence_count() == 0 ? 0 : Length(0); }

  SequenceRows sequences_;
  bool is_reverse_;
  std::span<int64_t> order_;
};

}  // namespace skiff
