// Broadcasting of two operands, and the sums that undo it.
//
// The rule is that of PaddlePaddle 2.6 (`axis` of the elementwise ops): the dims of the operand of
// lower rank are placed at dimension `axis` of the other (-1: at its end), missing dims count as 1,
// and a dim of 1 is repeated along the other operand's. As in Fluid 1.x, trailing dims of 1 that
// extend beyond the larger operand are dropped first: [4, 1] fits [2, 3, 4] at axis 2.
//
// Nothing here allocates memory, so a kernel can make these objects in each run, for its rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "framework/base/parallel.h"
#include "framework/tensor/shape.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/half.h"

namespace skiff {

// Returns the shape of the result. A dim of -1 stays unknown unless the other operand determines
// it. Throws Error, starting with `op`, for shapes that don't fit and for an axis outside the
// larger operand.
Shape BroadcastShape(const Shape& x, const Shape& y, int64_t axis, std::string_view op);

// A loop over the result. Strides count elements; 0: the operand is repeated.
struct BroadcastDim {
  int64_t size = 1;
  int64_t x_stride = 0;
  int64_t y_stride = 0;
  int64_t out_stride = 0;
};

struct BroadcastOffsets {
  int64_t x = 0;
  int64_t y = 0;
  int64_t out = 0;

  void Advance(const BroadcastDim& dim, int64_t steps) {
    x += steps * dim.x_stride;
    y += steps * dim.y_stride;
    out += steps * dim.out_stride;
  }
};

// Nested loops over dims, the last one fastest, with the offsets of each iteration.
class BroadcastWalk {
 public:
  explicit BroadcastWalk(std::span<const BroadcastDim> dims, BroadcastOffsets start = {})
      : dims_(dims), offsets_(start) {}

  const BroadcastOffsets& offsets() const { return offsets_; }

  // Moves from the start to iteration `index`.
  void Seek(int64_t index) {
    for (size_t i = dims_.size(); i-- > 0;) {
      position_[i] = index % dims_[i].size;
      index /= dims_[i].size;
      offsets_.Advance(dims_[i], position_[i]);
    }
  }

  void Next() {
    for (size_t i = dims_.size(); i-- > 0;) {
      offsets_.Advance(dims_[i], 1);
      if (++position_[i] < dims_[i].size) return;
      offsets_.Advance(dims_[i], -dims_[i].size);
      position_[i] = 0;
    }
  }

 private:
  std::span<const BroadcastDim> dims_;
  std::array<int64_t, Shape::kMaxRank> position_{};
  BroadcastOffsets offsets_;
};

// The loops over the result of two operands. Dims that are walked alike are merged and dims of 1
// dropped, so equal shapes make one loop, and a channel bias on [N, C, H, W] makes three.
class Broadcast {
 public:
  // Pairs `count` elements of both operands, whatever their shapes.
  explicit Broadcast(int64_t count);
  // The shapes must be known. Throws what BroadcastShape throws.
  Broadcast(const Shape& x, const Shape& y, int64_t axis, std::string_view op);

  // The number of elements of the result and of the operands.
  int64_t count() const { return count_; }
  int64_t x_count() const { return x_count_; }
  int64_t y_count() const { return y_count_; }

  // Outermost first; at least one. In the last one the result has stride 1, and the operands have
  // strides 0 or 1, not both 0.
  std::span<const BroadcastDim> dims() const { return {dims_.data(), rank_}; }
  const BroadcastDim& run() const { return dims_[rank_ - 1]; }

  // Calls body(offsets, length) for the runs that make up elements [begin, end) of the result.
  // Within a run an operand moves by its stride in run().
  template <typename Body>
  void ForEachRun(int64_t begin, int64_t end, const Body& body) const {
    if (begin >= end) return;
    const int64_t run_length = run().size;
    BroadcastWalk walk(dims().first(rank_ - 1));
    walk.Seek(begin / run_length);
    int64_t skipped = begin % run_length;
    for (int64_t at = begin; at < end; walk.Next()) {
      const int64_t length = std::min(run_length - skipped, end - at);
      BroadcastOffsets offsets = walk.offsets();
      offsets.Advance(run(), skipped);
      body(offsets, length);
      at += length;
      skipped = 0;
    }
  }

 private:
  void Append(const BroadcastDim& dim);

  std::array<BroadcastDim, Shape::kMaxRank> dims_{};
  size_t rank_ = 0;
  int64_t count_ = 0;
  int64_t x_count_ = 0;
  int64_t y_count_ = 0;
};

enum class BroadcastOperand { kX, kY };

// Sums values at the positions of the result into the operand's elements that were repeated there:
// the gradient of a broadcast.
//
// The order of the additions depends only on the shapes, so the number of threads changes no bit.
// Floating-point sums are carried in float64 from one segment to the next. Sums of half are those
// of float32, rounded.
class BroadcastReduction {
 public:
  template <typename T>
  using Sum = std::conditional_t<std::is_floating_point_v<WideType<T>>, double, T>;

  // The maximum length of a segment.
  static constexpr int64_t kSegment = 1024;

  BroadcastReduction(const Broadcast& broadcast, BroadcastOperand operand);

  // Returns the bytes of scratch memory that Run needs for T, for these rows (dim 0) or fewer.
  template <typename T>
  int64_t ScratchBytes() const {
    return scratch_sums_ * static_cast<int64_t>(sizeof(Sum<T>));
  }

  // Fills `sums`, which has as many elements as the operand. segment(offsets, length, buffer) must
  // return `length` values of WideType<T> at the offsets, either in the buffer of kSegment elements
  // or elsewhere.
  template <typename T, typename Segment>
  void Run(const Segment& segment, T* sums, void* scratch) const {
    // No loops: those over the other dims would still run, for no elements.
    if (is_empty_) {
      std::fill_n(sums, kept_count_, T());
      return;
    }
    auto* partial = static_cast<Sum<T>*>(scratch);
    ParallelFor(parts_ * tiles_, grain_, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end;) {
        Sum<T>* target = parts_ == 1 ? nullptr : partial + item / tiles_ * kept_count_;
        const int64_t tile = item % tiles_;
        const int64_t count =
            std::min({end - item, tiles_per_run_ - tile % tiles_per_run_, kTilesAtOnce});
        SumTiles<T>(segment, item / tiles_, tile, count, sums, target);
        item += count;
      }
    });
    if (parts_ == 1) return;
    ParallelFor(kept_count_, kSegment, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Sum<T> sum{0};
        for (int64_t part = 0; part < parts_; ++part) sum += partial[part * kept_count_ + i];
        sums[i] = Rounded<T>(sum);
      }
    });
  }

 private:
  using Dims = std::array<BroadcastDim, Shape::kMaxRank>;

  template <typename T>
  static T Rounded(Sum<T> sum) {
    return static_cast<T>(static_cast<WideType<T>>(sum));
  }

  // Enough independent pieces of work for many threads, with little scratch memory.
  static constexpr int64_t kEnoughTiles = 16;
  // Neighbours that a thread sums together. So it reads 32 KiB of a row of floats at a time: with
  // less, each row is a new page that the hardware's prefetcher doesn't expect.
  static constexpr int64_t kTilesAtOnce = 8;
  static constexpr int64_t kMaxParts = 64;
  static constexpr int64_t kMinPartElements = 32768;
  static constexpr int64_t kGrainElements = 16384;

  // Returns the parts into which a reduction of few sums is cut: `elements` in all.
  int64_t PartsOf(int64_t elements) const;
  // Returns the number of partial results of this reduction, or the larger number of a reduction
  // with fewer rows.
  int64_t ScratchSums(const Broadcast& broadcast) const;

  // Returns the operand's own offset.
  int64_t OperandOffset(const BroadcastOffsets& offsets) const {
    return operand_ == BroadcastOperand::kX ? offsets.x : offsets.y;
  }

  // Sets *dims to part `part` of the reduced loops, of which one is cut into parts_. Returns its
  // start.
  BroadcastOffsets CutReduced(int64_t part, Dims* dims) const {
    *dims = reduced_;
    BroadcastOffsets start;
    if (parts_ == 1) return start;
    BroadcastDim& cut = (*dims)[cut_];
    const int64_t begin = cut.size * part / parts_;
    const int64_t end = cut.size * (part + 1) / parts_;
    start.Advance(cut, begin);
    cut.size = end - begin;
    return start;
  }

  static int64_t Steps(std::span<const BroadcastDim> dims) {
    int64_t steps = 1;
    for (const BroadcastDim& dim : dims) steps *= dim.size;
    return steps;
  }

  // Sums `count` tiles of one run, at most kTilesAtOnce.
  template <typename T, typename Segment>
  void SumTiles(const Segment& segment, int64_t part, int64_t tile, int64_t count, T* sums,
                Sum<T>* partial) const {
    Dims reduced;
    BroadcastOffsets start = CutReduced(part, &reduced);
    BroadcastWalk kept(std::span<const BroadcastDim>(kept_).first(kept_rank_), start);
    kept.Seek(tile / tiles_per_run_);
    // Offsets along reduced dims are 0 in the operand.
    int64_t target = OperandOffset(kept.offsets());
    start = kept.offsets();
    if (!run_is_kept_) {
      const Sum<T> sum =
          SumAll<T>(segment, std::span<const BroadcastDim>(reduced).first(reduced_rank_), start);
      partial == nullptr ? void(sums[target] = Rounded<T>(sum)) : void(partial[target] = sum);
      return;
    }
    const int64_t first = tile % tiles_per_run_ * kSegment;
    const int64_t length = std::min(count * kSegment, run_.size - first);
    start.Advance(run_, first);
    target += first;
    std::array<Sum<T>, kTilesAtOnce * kSegment> columns;
    std::fill_n(columns.begin(), length, Sum<T>{0});
    SumColumns<T>(segment, std::span<const BroadcastDim>(reduced).first(reduced_rank_), start,
                  length, columns.data());
    if (partial != nullptr) {
      std::copy_n(columns.begin(), length, partial + target);
    } else {
      for (int64_t i = 0; i < length; ++i) {
        sums[target + i] = Rounded<T>(columns[static_cast<size_t>(i)]);
      }
    }
  }

  // Adds up the segments at every iteration of `dims`, element by element.
  template <typename T, typename Segment>
  void SumColumns(const Segment& segment, std::span<const BroadcastDim> dims,
                  const BroadcastOffsets& start, int64_t length, Sum<T>* columns) const {
    alignas(64) std::array<WideType<T>, kSegment> buffer;
    BroadcastWalk walk(dims, start);
    for (int64_t left = Steps(dims); left > 0; --left, walk.Next()) {
      BroadcastOffsets offsets = walk.offsets();
      for (int64_t first = 0; first < length; first += kSegment) {
        const int64_t count = std::min(kSegment, length - first);
        const WideType<T>* values = segment(offsets, count, buffer.data());
        if constexpr (std::is_same_v<WideType<T>, float>) {
          AddToSums(values, columns + first, count);
        } else {
          for (int64_t i = 0; i < count; ++i) columns[first + i] += static_cast<Sum<T>>(values[i]);
        }
        offsets.Advance(run_, count);
      }
    }
  }

  // Returns the sum over all iterations of `dims`, of which the last is a run.
  template <typename T, typename Segment>
  static Sum<T> SumAll(const Segment& segment, std::span<const BroadcastDim> dims,
                       const BroadcastOffsets& start) {
    alignas(64) std::array<WideType<T>, kSegment> buffer;
    const BroadcastDim run = dims.back();
    const auto outer = dims.first(dims.size() - 1);
    Sum<T> sum{0};
    BroadcastWalk walk(outer, start);
    for (int64_t left = Steps(outer); left > 0; --left, walk.Next()) {
      for (int64_t first = 0; first < run.size; first += kSegment) {
        BroadcastOffsets offsets = walk.offsets();
        offsets.Advance(run, first);
        const int64_t length = std::min(kSegment, run.size - first);
        sum += SumSegment(segment(offsets, length, buffer.data()), length);
      }
    }
    return sum;
  }

  // Sums independent lanes, so that the compiler can use vectors.
  template <typename T>
  static Sum<T> SumSegment(const T* values, int64_t length) {
    constexpr int64_t kLanes = 16;
    std::array<T, kLanes> lanes{};
    int64_t i = 0;
    for (; i + kLanes <= length; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        lanes[static_cast<size_t>(lane)] += values[i + lane];
      }
    }
    Sum<T> sum{0};
    for (const T& lane : lanes) sum += static_cast<Sum<T>>(lane);
    for (; i < length; ++i) sum += static_cast<Sum<T>>(values[i]);
    return sum;
  }

  BroadcastOperand operand_;
  bool is_empty_ = false;  // whether the result has no elements
  // The result's dims along which the operand moves, and the dims along which the operand is
  // repeated. If the run is kept, it is in neither list, else it is the last of the reduced dims.
  Dims kept_{};
  Dims reduced_{};
  size_t kept_rank_ = 0;
  size_t reduced_rank_ = 0;
  BroadcastDim run_;
  bool run_is_kept_ = false;
  int64_t kept_count_ = 1;
  // Work is cut into tiles of kept elements and, if there are few of these, also into parts of the
  // longest reduced dim.
  int64_t tiles_per_run_ = 1;
  int64_t tiles_ = 0;
  int64_t parts_ = 1;
  size_t cut_ = 0;
  int64_t scratch_sums_ = 0;
  int64_t grain_ = 1;
};

}  // namespace skiff
