// Kernels on half that compute in float32: their loops see rows of float32, which are converted one
// after the other and stay in the cache. So float32 and half have the same formula, loop and
// vectors, and half gets the bits of the float32 kernel, rounded once.
//
// Where T isn't half, a row is the data themselves: nothing is copied, and no memory is requested.
//
//   const ThreadScratch<T> scratch(context, rows, 1, size);
//   …
//   scratch.ForEach(run, rows, GrainOf(size), [&](int64_t row, const WideRows<T>& wide) {
//     const WideType<T>* from = ReadRow(x, row * size, size, wide[0]);
//     WideType<T>* to = PlaceOfRow(y, row * size, wide[0]);
//     Negate(from, size, to);
//     WriteRow(to, size, y, row * size);
//   });
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "framework/base/element_count.h"
#include "framework/base/parallel.h"
#include "framework/op/arguments.h"
#include "framework/op/kernel.h"
#include "operators/common/half.h"
#include "operators/common/half_arrays.h"

namespace skiff {

// Returns elements [first, first + count) of the data, in `scratch` if T is half; nullptr if `data`
// is nullptr.
template <typename T>
const WideType<T>* ReadRow(const T* data, int64_t first, int64_t count, WideType<T>* scratch) {
  if (data == nullptr) return nullptr;
  if constexpr (kIsHalf<T>) {
    const auto* halves = reinterpret_cast<const uint16_t*>(data + first);
    HalfArraysOf(kDTypeOf<T>).to_floats(halves, count, scratch);
    return scratch;
  } else {
    return data + first;
  }
}

// Returns where a loop writes the elements of the data from `first` on, which WriteRow then rounds:
// `scratch` if T is half; nullptr if `data` is nullptr.
template <typename T>
WideType<T>* PlaceOfRow(T* data, int64_t first, WideType<T>* scratch) {
  if (data == nullptr) return nullptr;
  if constexpr (kIsHalf<T>) {
    return scratch;
  } else {
    return data + first;
  }
}

// Rounds a row, which PlaceOfRow gave, to the data. Does nothing if `data` is nullptr.
template <typename T>
void WriteRow(const WideType<T>* row, int64_t count, T* data, int64_t first) {
  if constexpr (kIsHalf<T>) {
    if (data == nullptr) return;
    HalfArraysOf(kDTypeOf<T>).from_floats(row, count, reinterpret_cast<uint16_t*>(data + first));
  }
}

// Memory for some rows.
template <typename T>
struct WideRows {
  WideType<T>* memory = nullptr;
  int64_t size = 0;  // of a row

  // Returns row i, or nullptr unless T is half.
  WideType<T>* operator[](int64_t i) const { return kIsHalf<T> ? memory + i * size : nullptr; }
};

// Memory of a kernel in which each thread has some rows.
template <typename T>
class ThreadScratch {
 public:
  // For loops of up to `count` iterations, with `rows` rows of `size` numbers for each thread.
  ThreadScratch(PrepareContext& context, int64_t count, int64_t rows, int64_t size)
      : rows_(rows), size_(size) {
    if constexpr (kIsHalf<T>) {
      slots_ = std::clamp<int64_t>(count, 1, omp_get_max_threads());
      const int64_t numbers = MultiplyCounts(slots_ * rows_, size_);
      workspace_ = context.RequestWorkspace(ByteCount(numbers, kDTypeOf<WideType<T>>));
    }
  }

  // Calls visit(i, the thread's rows) for i in [0, count), on several threads if count > grain.
  template <typename Visit>
  void ForEach(const KernelContext& run, int64_t count, int64_t grain, const Visit& visit) const {
    if constexpr (kIsHalf<T>) {
      auto* memory = static_cast<WideType<T>*>(run.workspace(workspace_));
      ParallelFor(slots_, count > grain ? 1 : slots_, [&](int64_t begin, int64_t end) {
        for (int64_t slot = begin; slot < end; ++slot) {
          const WideRows<T> rows{memory + slot * rows_ * size_, size_};
          const int64_t last = count * (slot + 1) / slots_;
          for (int64_t i = count * slot / slots_; i < last; ++i) visit(i, rows);
        }
      });
    } else {
      ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) visit(i, WideRows<T>());
      });
    }
  }

 private:
  int64_t rows_;
  int64_t size_;
  int64_t slots_ = 1;
  int workspace_ = -1;
};

// An input of few elements that a kernel reads again and again, such as a bias.
template <typename T>
class WideInput {
 public:
  WideInput(PrepareContext& context, std::string_view slot) : input_(context, slot) {
    if constexpr (kIsHalf<T>) {
      if (!input_.is_there()) return;
      const int64_t count = context.Input(slot).shape.element_count();
      workspace_ = context.RequestWorkspace(ByteCount(count, kDTypeOf<WideType<T>>));
    }
  }

  // Returns its elements; nullptr where In<T> does. Converts them if T is half: call it once a run.
  const WideType<T>* operator()(const KernelContext& run) const {
    if (workspace_ < 0) return ReadRow<T>(input_(run), 0, 0, nullptr);
    auto* wide = static_cast<WideType<T>*>(run.workspace(workspace_));
    return ReadRow(input_(run), 0, input_.count(run), wide);
  }

 private:
  In<T> input_;
  int workspace_ = -1;
};

}  // namespace skiff
