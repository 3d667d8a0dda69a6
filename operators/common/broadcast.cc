#include "operators/common/broadcast.h"

#include <algorithm>

#include "framework/base/error.h"

namespace skiff {
namespace {

// Returns `small` with the rank of `large`: its dims from `axis` on, 1 elsewhere.
Shape Align(const Shape& small, const Shape& large, int64_t axis, std::string_view op) {
  const int64_t difference = large.rank() - small.rank();
  const int64_t start = axis < 0 ? difference + axis + 1 : axis;
  int64_t rank = small.rank();
  // Drops trailing dims of 1 that extend beyond `large`, as Fluid 1.x does.
  while (rank > 0 && start + rank > large.rank() && small[static_cast<int>(rank) - 1] == 1) --rank;
  SKIFF_ENFORCE(start >= 0 && start + rank <= large.rank(), kInvalidArgument, op, ": axis = ", axis,
                " puts shape ", small, " outside of ", large, ": expected an axis in [0, ",
                difference, "] or -1");
  Shape aligned;
  for (int i = 0; i < large.rank(); ++i) {
    const bool inside = i >= start && i < start + rank;
    aligned.Append(inside ? small[i - static_cast<int>(start)] : 1);
  }
  return aligned;
}

// Returns whether the known dims are equal.
bool MayBeEqual(const Shape& x, const Shape& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](int64_t a, int64_t b) { return a == b || a < 0 || b < 0; });
}

struct AlignedShapes {
  Shape x;
  Shape y;
  Shape out;
};

// Returns the dim of the result. An unknown dim is that of the other operand unless that one is 1.
int64_t BroadcastDimSize(int64_t x, int64_t y) {
  if (x == 1) return y;
  if (y == 1 || y < 0) return x;
  return x < 0 ? y : x;
}

AlignedShapes AlignShapes(const Shape& x, const Shape& y, int64_t axis, std::string_view op) {
  // Fluid ignores the axis if the operands have one shape.
  if (MayBeEqual(x, y)) axis = -1;
  AlignedShapes shapes{x, y, {}};
  if (x.rank() >= y.rank()) {
    shapes.y = Align(y, x, axis, op);
  } else {
    shapes.x = Align(x, y, axis, op);
  }
  for (int i = 0; i < shapes.x.rank(); ++i) {
    const int64_t a = shapes.x[i];
    const int64_t b = shapes.y[i];
    SKIFF_ENFORCE(a == b || a == 1 || b == 1 || a < 0 || b < 0, kInvalidArgument, op, ": shapes X ",
                  x, " and Y ", y, " don't broadcast at axis = ", axis, ": ", a, " against ", b,
                  ", expected equal dims or a 1");
    shapes.out.Append(BroadcastDimSize(a, b));
  }
  return shapes;
}

}  // namespace

Shape BroadcastShape(const Shape& x, const Shape& y, int64_t axis, std::string_view op) {
  return AlignShapes(x, y, axis, op).out;
}

Broadcast::Broadcast(int64_t count) : count_(count), x_count_(count), y_count_(count) {
  Append({.size = count, .x_stride = 1, .y_stride = 1, .out_stride = 1});
}

Broadcast::Broadcast(const Shape& x, const Shape& y, int64_t axis, std::string_view op)
    : x_count_(x.element_count()), y_count_(y.element_count()) {
  const AlignedShapes shapes = AlignShapes(x, y, axis, op);
  count_ = shapes.out.element_count();
  const int rank = shapes.out.rank();
  for (int i = 0; i < rank; ++i) {
    if (shapes.out[i] == 1) continue;
    const auto stride = [&](const Shape& shape) {
      return shape[i] == 1 ? 0 : shape.element_count(i + 1, rank);
    };
    Append({.size = shapes.out[i],
            .x_stride = stride(shapes.x),
            .y_stride = stride(shapes.y),
            .out_stride = shapes.out.element_count(i + 1, rank)});
  }
  if (rank_ == 0) Append({.size = count_, .x_stride = 1, .y_stride = 1, .out_stride = 1});
}

// Appends a dim, merging it into the one before it if both operands walk the two as one. So equal
// shapes make a single loop.
void Broadcast::Append(const BroadcastDim& dim) {
  if (rank_ > 0) {
    BroadcastDim& outer = dims_[rank_ - 1];
    // The result is contiguous, so only the strides of the operands decide.
    if (outer.x_stride == dim.size * dim.x_stride && outer.y_stride == dim.size * dim.y_stride) {
      const int64_t size = outer.size * dim.size;
      outer = dim;
      outer.size = size;
      return;
    }
  }
  dims_[rank_++] = dim;
}

BroadcastReduction::BroadcastReduction(const Broadcast& broadcast, BroadcastOperand operand)
    : operand_(operand), is_empty_(broadcast.count() == 0), run_(broadcast.run()) {
  const auto is_kept = [&](const BroadcastDim& dim) {
    return (operand == BroadcastOperand::kX ? dim.x_stride : dim.y_stride) != 0;
  };
  // If the run is kept, its elements are separate sums, taken side by side in segments: a tile is
  // one segment. If it is reduced, a tile is one sum.
  run_is_kept_ = is_kept(run_);
  kept_count_ = operand == BroadcastOperand::kX ? broadcast.x_count() : broadcast.y_count();
  const auto dims = broadcast.dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!is_kept(dims[i])) {
      reduced_[reduced_rank_++] = dims[i];
    } else if (i + 1 < dims.size()) {
      kept_[kept_rank_++] = dims[i];
    }
  }
  tiles_ = kept_count_;
  if (run_is_kept_ && run_.size > 0) {
    tiles_per_run_ = (run_.size + kSegment - 1) / kSegment;
    tiles_ = kept_count_ / run_.size * tiles_per_run_;
  }
  for (size_t i = 0; i < reduced_rank_; ++i) {
    if (reduced_[i].size > reduced_[cut_].size) cut_ = i;
  }
  // Few tiles would keep few threads busy, so the longest reduced dim is cut into parts. Run adds
  // the sums of the parts in order, and the cut depends only on the sizes, so the number of threads
  // doesn't change the result.
  if (tiles_ < kEnoughTiles && reduced_rank_ > 0) parts_ = PartsOf(broadcast.count());
  scratch_sums_ = ScratchSums(broadcast);
  const int64_t items = std::max<int64_t>(parts_ * tiles_, 1);
  const int64_t item_elements = std::max<int64_t>(broadcast.count() / items, 1);
  grain_ = std::max<int64_t>(kGrainElements / item_elements, 1);
}

int64_t BroadcastReduction::PartsOf(int64_t elements) const {
  return std::max<int64_t>(std::min({kMaxParts, reduced_[cut_].size, elements / kMinPartElements}),
                           1);
}

int64_t BroadcastReduction::ScratchSums(const Broadcast& broadcast) const {
  const int64_t own = parts_ == 1 ? 0 : parts_ * kept_count_;
  const BroadcastDim& rows = broadcast.dims().front();
  const bool keeps_rows = (operand_ == BroadcastOperand::kX ? rows.x_stride : rows.y_stride) != 0;
  if (is_empty_ || reduced_rank_ == 0 || !keeps_rows) return own;
  // With fewer rows there may be so few tiles that they are cut into parts.
  const int64_t tile = run_is_kept_ ? kSegment : 1;
  const int64_t sums = std::min(kept_count_, (kEnoughTiles - 1) * tile);
  const int64_t parts = PartsOf(broadcast.count() / kept_count_ * sums);
  return std::max(own, parts == 1 ? 0 : parts * sums);
}

}  // namespace skiff
