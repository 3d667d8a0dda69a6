// The time steps of sequences that are padded to one length: in a tensor [time, batch, …] or
// [time * batch, …], row t * batch + b is that of sequence b at time t.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "framework/tensor/tensor.h"
#include "operators/sequence/kernels/time_steps.h"

namespace skiff {

// Sequence j and batch order: see TimeSteps. A layer that runs backwards in time visits the same
// rows in batch order as a layer that runs forwards: its last sequences begin late.
class PaddedSteps {
 public:
  // Returns how many numbers an object needs.
  static int64_t NumbersOf(int64_t time, int64_t batch) { return time + 2 * batch + 2; }

  // `lengths` has an int32 or int64 per sequence; nullptr: all are `time` long. Throws Error
  // (kOutOfRange), starting with `what`, for a length outside 0 to `time`.
  PaddedSteps(int64_t time, int64_t batch, const Tensor* lengths, int64_t* numbers,
              std::string_view what);

  int64_t batch() const { return batch_; }
  // Returns the number of rows of all sequences, without padding.
  int64_t rows() const { return first_.back(); }
  // Returns whether nothing is padded. Then rows in batch order are those of the tensor.
  bool is_dense() const { return rows() == time_ * batch_; }

  // Returns the index of sequence j in the batch.
  int64_t Index(int64_t j) const { return steps_.Index(j); }
  // Returns whether sequence j has a row at a time, which may be -1 or past the end.
  bool HasRow(int64_t j, int64_t time) const {
    return time >= 0 && time < time_ && j < Count(time);
  }
  // Returns where the row of sequence j at a time is, in batch order and in the tensor.
  int64_t Row(int64_t j, int64_t time) const { return First(time) + j; }
  int64_t PaddedRow(int64_t j, int64_t time) const { return time * batch_ + Index(j); }

  // Calls body(step) for each time step (TimeSteps::Step), from the first one or backwards.
  template <typename Body>
  void ForEach(bool backwards, const Body& body) const {
    backwards ? steps_.ForEachBackwards(body) : steps_.ForEach(body);
  }
  // Calls body(row, padded_row) for each row in batch order.
  template <typename Body>
  void ForEachRow(const Body& body) const {
    for (int64_t time = 0; time < time_; ++time) {
      for (int64_t j = 0; j < Count(time); ++j) body(Row(j, time), PaddedRow(j, time));
    }
  }
  // Calls body(padded_row) for each row of the tensor that belongs to no sequence.
  template <typename Body>
  void ForEachPadding(const Body& body) const {
    for (int64_t time = 0; time < time_; ++time) {
      for (int64_t j = Count(time); j < batch_; ++j) body(PaddedRow(j, time));
    }
  }

 private:
  int64_t First(int64_t time) const { return first_[static_cast<size_t>(time)]; }
  int64_t Count(int64_t time) const { return First(time + 1) - First(time); }

  int64_t time_;
  int64_t batch_;
  TimeSteps steps_;
  std::span<int64_t> first_;  // of each time step and of the end of the last
};

}  // namespace skiff
