// Numbers that kernels compute as WideType<T> and store as T, which are two types for half: its
// products read rounded numbers, and all else goes on in float32. Of other types, both are the same
// array, and nothing is copied.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/base/parallel.h"
#include "operators/common/half.h"
#include "operators/common/half_arrays.h"
#include "operators/sequence/kernels/workspace.h"

namespace skiff {

constexpr int64_t kCopyGrain = 1 << 15;  // the numbers that are worth a thread

// Copies numbers, of half rounded. `to` may be `from`.
template <typename T>
void RoundRow(const WideType<T>* from, int64_t count, T* to) {
  if constexpr (kIsHalf<T>) {
    if (count > 0) HalfArraysOf(kDTypeOf<T>).from_floats(from, count, &to->bits);
  } else if (from != to) {
    std::copy_n(from, count, to);
  }
}
// Copies numbers, the other way round.
template <typename T>
void WidenRow(const T* from, int64_t count, WideType<T>* to) {
  if constexpr (kIsHalf<T>) {
    if (count > 0) HalfArraysOf(kDTypeOf<T>).to_floats(&from->bits, count, to);
  } else if (from != to) {
    std::copy_n(from, count, to);
  }
}

// Copies numbers on several threads, of half rounded or widened.
template <typename T>
void RoundAll(const WideType<T>* from, int64_t count, T* to) {
  ParallelFor(count, kCopyGrain,
              [=](int64_t begin, int64_t end) { RoundRow(from + begin, end - begin, to + begin); });
}
template <typename T>
void WidenAll(const T* from, int64_t count, WideType<T>* to) {
  ParallelFor(count, kCopyGrain,
              [=](int64_t begin, int64_t end) { WidenRow(from + begin, end - begin, to + begin); });
}

// An array, as it is computed and as it is stored.
template <typename T>
struct WideAndStored {
  WideType<T>* wide;
  T* stored;

  WideAndStored operator+(int64_t numbers) const { return {wide + numbers, stored + numbers}; }
  // Stores the first numbers.
  void Store(int64_t count) const { RoundRow(wide, count, stored); }
};

// The memory for computing numbers that are stored elsewhere.
template <typename T>
class WideWorkspace {
 public:
  WideWorkspace(PrepareContext& context, int64_t rows, int64_t columns = 1)
      : wide_(context, kIsHalf<T> ? rows : 0, columns) {}

  WideAndStored<T> operator()(const KernelContext& run, T* stored) const {
    if constexpr (kIsHalf<T>) {
      return {wide_(run), stored};
    } else {
      return {stored, stored};
    }
  }

 private:
  Workspace<WideType<T>> wide_;
};

// An input as WideType<T>.
template <typename T>
class WidenedInput {
 public:
  // The input has at most `count` numbers. The op may lack it.
  WidenedInput(PrepareContext& context, const In<T>& input, int64_t count)
      : input_(input), wide_(context, kIsHalf<T> && input.is_there() ? count : 0) {}

  bool is_there() const { return input_.is_there(); }
  // Reads the input, at the begin of a run.
  void Load(const KernelContext& run) const {
    if constexpr (kIsHalf<T>) {
      if (is_there()) WidenAll(input_(run), input_.count(run), wide_(run));
    }
  }
  // Returns the numbers; nullptr if the op lacks the input.
  const WideType<T>* operator()(const KernelContext& run) const {
    if constexpr (kIsHalf<T>) {
      return is_there() ? wide_(run) : nullptr;
    } else {
      return input_(run);
    }
  }

 private:
  In<T> input_;
  Workspace<WideType<T>> wide_;
};

}  // namespace skiff
