// Two ways to reduce, by the innermost run of contiguous elements. If the run is reduced
// (FoldRows), an output is a sum along vectors. If it is kept (FoldColumns), a vector holds
// neighbouring outputs, and rows of a tile of columns are added up.
//
// Sums of float32 run in vectors of float32 over some thousand elements, or 64 rows, and go on in
// float64: so rounding errors don't grow with the size, at the speed of float32. A large reduction
// is cut into parts by the sizes alone, and the parts' results are joined in order, so the number
// of threads doesn't change results.
#include "operators/common/cpu/reduce.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

#include "framework/base/parallel.h"
#include "operators/common/cpu/array_reduction.h"
#include "operators/common/reduction_rules.h"

namespace skiff {
namespace {

using reduction::Addition;
using reduction::Extreme;
using reduction::FoldParts;
using reduction::kGrain;
using reduction::kTileColumns;
using reduction::Multiplication;
using reduction::ProductOf;
using reduction::Quantifier;

// The most partial results of columns, which are on the stack: 64 KiB.
constexpr int64_t kMaxCarries = 8192;

}  // namespace

// Walks through the axes from the innermost one outwards. Axes of one kind (kept or reduced) that
// are next to each other become one: those at the inner end the run of contiguous elements, the
// others a dim of kept_ or reduced_. Axes of size 1 don't matter for either.
AxisReduction::AxisReduction(const Shape& shape, const AxisFlags& is_reduced) {
  Shape kept;
  Shape reduced;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    (is_reduced[static_cast<size_t>(axis)] ? reduced : kept).Append(shape[axis]);
  }
  output_count_ = kept.element_count();
  reduced_elements_ = reduced.element_count();
  if (shape.element_count() == 0) {
    // No element is read: Fold sets each output to the identity of its reduction.
    kept_count_ = 0;
    return;
  }
  int64_t stride = 1;
  bool in_run = true;
  bool previous_is_reduced = true;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    const int64_t size = shape[axis];
    const bool axis_is_reduced = is_reduced[static_cast<size_t>(axis)];
    // An axis of one element changes neither the order of elements nor the results.
    if (size == 1) continue;
    if (stride == 1) run_is_reduced_ = previous_is_reduced = axis_is_reduced;
    in_run = in_run && axis_is_reduced == run_is_reduced_;
    Dims& dims = axis_is_reduced ? reduced_ : kept_;
    if (in_run) {
      run_length_ *= size;
    } else if (axis_is_reduced == previous_is_reduced && !dims.empty()) {
      // The two axes are contiguous: together they are a dim with the stride of the inner one.
      dims.outermost().size *= size;
    } else {
      dims.AddOutside({size, stride});
    }
    previous_is_reduced = axis_is_reduced;
    stride *= size;
  }
  kept_count_ = kept_.iterations();
  reduced_count_ = reduced_.iterations();
}

int64_t AxisReduction::Dims::iterations() const {
  int64_t count = 1;
  for (size_t i = dims_.size() - count_; i < dims_.size(); ++i) count *= dims_[i].size;
  return count;
}

void AxisReduction::Dims::AddOutside(const Dim& dim) { dims_[dims_.size() - ++count_] = dim; }

int64_t AxisReduction::Dims::Offset(int64_t iteration) const {
  int64_t offset = 0;
  for (size_t i = dims_.size(); i-- > dims_.size() - count_;) {
    offset += iteration % dims_[i].size * dims_[i].stride;
    iteration /= dims_[i].size;
  }
  return offset;
}

// Sets outputs to finish(the partial result of a rule).
class AxisReduction::Folding {
 public:
  explicit Folding(const AxisReduction& axes) : axes_(axes) {}

  template <typename Rule, typename Out, typename Finish>
  void Fold(const typename Rule::Value* x, Out* out, const Finish& finish) const {
    if (axes_.output_count_ == 0) return;
    if (axes_.kept_count_ == 0) {
      std::fill(out, out + axes_.output_count_, finish(Rule::Identity()));
    } else if (axes_.run_is_reduced_) {
      FoldRows<Rule>(x, out, finish);
    } else {
      FoldColumns<Rule>(x, out, finish);
    }
  }

 private:
  // For a reduced run: outputs come from rows of contiguous elements.
  template <typename Rule, typename Out, typename Finish>
  void FoldRows(const typename Rule::Value* x, Out* out, const Finish& finish) const {
    // A single output of contiguous elements: threads share its parts. Otherwise they share the
    // outputs.
    if (axes_.kept_count_ == 1 && axes_.reduced_count_ == 1) {
      *out = finish(FoldParts<typename Rule::Carry>(
          axes_.run_length_,
          [x](int64_t begin, int64_t size) { return Rule::OfRow(x + begin, size); }, Rule::Join));
      return;
    }
    const int64_t grain = std::max<int64_t>(1, kGrain / (axes_.reduced_count_ * axes_.run_length_));
    ParallelFor(axes_.kept_count_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const typename Rule::Value* from = x + axes_.kept_.Offset(i);
        typename Rule::Carry carry = Rule::Identity();
        for (int64_t r = 0; r < axes_.reduced_count_; ++r) {
          carry =
              Rule::Join(carry, Rule::OfRow(from + axes_.reduced_.Offset(r), axes_.run_length_));
        }
        out[i] = finish(carry);
      }
    });
  }

  // For a kept run: a run is a row of outputs, each of which comes from a column.
  template <typename Rule, typename Out, typename Finish>
  void FoldColumns(const typename Rule::Value* x, Out* out, const Finish& finish) const {
    // Few columns don't keep all threads busy, so their rows are cut into parts. The sizes alone
    // determine the cut, so the number of threads doesn't change the result.
    const int64_t outputs = axes_.kept_count_ * axes_.run_length_;
    // As many parts as there is stack for, but not so many that the average one has fewer than
    // kGrain elements.
    const int64_t parts = std::min(kMaxCarries / outputs, axes_.reduced_count_ * outputs / kGrain);
    if (parts > 1) return FoldColumnsInParts<Rule>(x, out, finish, parts);
    const int64_t grain = std::max<int64_t>(
        1, kGrain / (axes_.reduced_count_ * std::min(kTileColumns, axes_.run_length_)));
    ParallelFor(axes_.kept_count_ * TilesPerRun(), grain, [&](int64_t begin, int64_t end) {
      std::array<typename Rule::Carry, kTileColumns> carries;
      for (int64_t tile = begin; tile < end; ++tile) {
        const int64_t columns = FoldTile<Rule>(x, tile, 0, axes_.reduced_count_, carries.data());
        Out* to = out + FirstOutputOf(tile);
        for (int64_t j = 0; j < columns; ++j) to[j] = finish(carries[static_cast<size_t>(j)]);
      }
    });
  }

  // FoldColumns with the rows cut into parts, which are joined in order.
  template <typename Rule, typename Out, typename Finish>
  void FoldColumnsInParts(const typename Rule::Value* x, Out* out, const Finish& finish,
                          int64_t parts) const {
    using Carry = typename Rule::Carry;
    const int64_t outputs = axes_.kept_count_ * axes_.run_length_;
    const int64_t tiles = axes_.kept_count_ * TilesPerRun();
    const int64_t height = (axes_.reduced_count_ + parts - 1) / parts;
    std::array<Carry, kMaxCarries> carries;
    // The last parts may have no rows, since the height is rounded up. Their carries are
    // identities.
    ParallelFor(parts * tiles, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t part = i / tiles;
        const int64_t tile = i % tiles;
        const int64_t first = std::min(part * height, axes_.reduced_count_);
        FoldTile<Rule>(x, tile, first, std::min(first + height, axes_.reduced_count_),
                       carries.data() + part * outputs + FirstOutputOf(tile));
      }
    });
    for (int64_t j = 0; j < outputs; ++j) {
      Carry carry = carries[static_cast<size_t>(j)];
      for (int64_t part = 1; part < parts; ++part) {
        carry = Rule::Join(carry, carries[static_cast<size_t>(part * outputs + j)]);
      }
      out[j] = finish(carry);
    }
  }

  // A tile is a part of a kept run whose results fit into the first-level cache. Tiles are numbered
  // through all kept runs.
  int64_t TilesPerRun() const { return (axes_.run_length_ + kTileColumns - 1) / kTileColumns; }

  int64_t FirstOutputOf(int64_t tile) const {
    const int64_t tiles = TilesPerRun();
    return tile / tiles * axes_.run_length_ + tile % tiles * kTileColumns;
  }

  // Sets carries to the partial results of rows [begin, end) of a tile. Returns the number of its
  // columns.
  template <typename Rule>
  int64_t FoldTile(const typename Rule::Value* x, int64_t tile, int64_t begin, int64_t end,
                   typename Rule::Carry* carries) const {
    const int64_t tiles = TilesPerRun();
    const int64_t column = tile % tiles * kTileColumns;
    const int64_t columns = std::min(kTileColumns, axes_.run_length_ - column);
    const Dim rows = axes_.reduced_.empty() ? Dim{1, 0} : axes_.reduced_.innermost();
    const typename Rule::Value* from = x + axes_.kept_.Offset(tile / tiles) + column;
    std::fill_n(carries, columns, Rule::Identity());
    // Rows of the innermost reduced dim are equally far apart, so they are one call.
    for (int64_t r = begin; r < end;) {
      const int64_t height = std::min(rows.size - r % rows.size, end - r);
      Rule::AddColumns(from + axes_.reduced_.Offset(r), rows.stride, height, columns, carries);
      r += height;
    }
    return columns;
  }

  const AxisReduction& axes_;
};

template <typename T, typename Out>
void AxisReduction::Sum(const T* x, Out* out, int64_t divisor) const {
  // A sum of integers has wrapped around modulo 2^64; divide the signed number that it represents.
  using Signed = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
  Folding(*this).Fold<Addition<T>>(x, out, [divisor](SumOf<T> sum) {
    return static_cast<Out>(static_cast<Signed>(sum) / static_cast<Signed>(divisor));
  });
}

template <typename T>
void AxisReduction::Product(const T* x, T* out) const {
  Folding(*this).Fold<Multiplication<T>>(
      x, out, [](ProductOf<T> product) { return static_cast<T>(product); });
}

template <typename T>
void AxisReduction::Max(const T* x, T* out) const {
  Folding(*this).Fold<Extreme<T, true>>(x, out, [](T best) { return best; });
}

template <typename T>
void AxisReduction::Min(const T* x, T* out) const {
  Folding(*this).Fold<Extreme<T, false>>(x, out, [](T best) { return best; });
}

void AxisReduction::All(const bool* x, bool* out) const {
  Folding(*this).Fold<Quantifier<true>>(x, out, [](bool result) { return result; });
}

void AxisReduction::Any(const bool* x, bool* out) const {
  Folding(*this).Fold<Quantifier<false>>(x, out, [](bool result) { return result; });
}

template <typename T>
void AxisReduction::Broadcast(const T* sums, T factor, T* x) const {
  ForEachPiece([=](int64_t offset, int64_t size, int64_t output, bool is_one_output) {
    if (is_one_output) {
      std::fill(x + offset, x + offset + size, factor * sums[output]);
    } else {
      ScaleArray(sums + output, factor, x + offset, size);
    }
  });
}

template <typename T>
void AxisReduction::SpreadToEqual(const T* x, const T* out, const T* gradient, T* dx) const {
  ForEachPiece([=](int64_t offset, int64_t size, int64_t output, bool is_one_output) {
    const T* from = x + offset;
    T* to = dx + offset;
    if constexpr (std::is_same_v<T, float>) {
      if (is_one_output) {
        reduction::SpreadOne(from, out + output, gradient + output, to, size);
      } else {
        reduction::SpreadEach(from, out + output, gradient + output, to, size);
      }
    } else {
      for (int64_t i = 0; i < size; ++i) {
        const int64_t at = is_one_output ? output : output + i;
        to[i] = from[i] == out[at] ? gradient[at] : T{0};
      }
    }
  });
}

template void AxisReduction::Sum(const float*, float*, int64_t) const;
template void AxisReduction::Sum(const double*, double*, int64_t) const;
template void AxisReduction::Sum(const int32_t*, int32_t*, int64_t) const;
template void AxisReduction::Sum(const int64_t*, int64_t*, int64_t) const;
template void AxisReduction::Sum(const int32_t*, int64_t*, int64_t) const;
template void AxisReduction::Sum(const bool*, int64_t*, int64_t) const;
template void AxisReduction::Product(const float*, float*) const;
template void AxisReduction::Product(const double*, double*) const;
template void AxisReduction::Product(const int32_t*, int32_t*) const;
template void AxisReduction::Product(const int64_t*, int64_t*) const;
template void AxisReduction::Max(const float*, float*) const;
template void AxisReduction::Max(const double*, double*) const;
template void AxisReduction::Max(const int32_t*, int32_t*) const;
template void AxisReduction::Max(const int64_t*, int64_t*) const;
template void AxisReduction::Min(const float*, float*) const;
template void AxisReduction::Min(const double*, double*) const;
template void AxisReduction::Min(const int32_t*, int32_t*) const;
template void AxisReduction::Min(const int64_t*, int64_t*) const;
template void AxisReduction::Broadcast(const float*, float, float*) const;
template void AxisReduction::Broadcast(const double*, double, double*) const;
template void AxisReduction::SpreadToEqual(const float*, const float*, const float*, float*) const;
template void AxisReduction::SpreadToEqual(const double*, const double*, const double*,
                                           double*) const;

}  // namespace skiff
