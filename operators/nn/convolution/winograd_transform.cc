// The transforms of Winograd convolutions: of tiles of images, and of filters.
//
// The results of a one-dimensional transform come in pairs, for the points p and -p, which share
// their sums of even and odd terms. A two-dimensional transform makes a pair of rows at a time, so
// that no more than two rows of a tile are in registers. A vector holds channels of one pixel, so
// no transform moves data between lanes.
#include <algorithm>
#include <cstring>
#include <tuple>

#include "operators/nn/convolution/winograd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/convolution/winograd_transform.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "operators/common/cpu/half_lanes-inl.h"
#include "operators/common/cpu/transpose_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatMask = hn::Mask<FloatTag>;
// Taps of a filter, and elements of a block of lanes x lanes filters.
constexpr int64_t kTaps = 9;
constexpr int64_t kFilterBlock = kLanes * kLanes * kTaps;

HWY_INLINE FloatVector Splat(double value) {
  return hn::Set(FloatTag(), static_cast<float>(value));
}

struct Pair {
  FloatVector first;
  FloatVector second;
};

// Returns e + o and e - o, with o scaled by `point`.
HWY_INLINE Pair PlusMinus(FloatVector even, FloatVector odd, double point) {
  return {hn::MulAdd(Splat(point), odd, even), hn::NegMulAdd(Splat(point), odd, even)};
}

// F(t x t, 3 x 3): the rows of Bᵀ, A, Aᵀ, G and Gᵀ, in pairs. kInputRows has the numbers of the
// rows that Input<p> (and Gradient<p>, Filter<p>) computes, kOutputRows those of Output<p>. `at(i)`
// returns element i of the vector that is transformed.
template <int kSide>
struct Minimal;

template <>
struct Minimal<4> {
  static constexpr int kPairs = 3;
  static constexpr int kInputRows[3][2] = {{0, 5}, {1, 2}, {3, 4}};
  static constexpr int kOutputPairs = 2;
  static constexpr int kOutputRows[2][2] = {{0, 2}, {1, 3}};
  // Points ±a and ±b; a² b² = 1.
  static constexpr double a = 0.70710678118654752440;
  static constexpr double b = 1.41421356237309504880;
  static constexpr double a2 = 0.5;
  static constexpr double b2 = 2.0;
  // The scale of G's rows: 1 / (2 a² (a² - b²)) and 1 / (2 b² (b² - a²)).
  static constexpr double ga = -2.0 / 3.0;
  static constexpr double gb = 1.0 / 6.0;

  template <int kPair, typename At>
  static HWY_INLINE Pair Input(const At& at) {
    if constexpr (kPair == 0) {
      const auto middle = Splat(a2 + b2);
      return {hn::NegMulAdd(middle, at(2), hn::Add(at(0), at(4))),
              hn::NegMulAdd(middle, at(3), hn::Add(at(1), at(5)))};
    } else {
      const auto other = Splat(kPair == 1 ? b2 : a2);
      return PlusMinus(hn::NegMulAdd(other, at(2), at(4)), hn::NegMulAdd(other, at(1), at(3)),
                       kPair == 1 ? a : b);
    }
  }

  template <int kPair, typename At>
  static HWY_INLINE Pair Gradient(const At& at) {
    if constexpr (kPair == 0) {
      return {at(0), at(3)};
    } else {
      const auto square = Splat(kPair == 1 ? a2 : b2);
      return PlusMinus(hn::MulAdd(square, at(2), at(0)), hn::MulAdd(square, at(3), at(1)),
                       kPair == 1 ? a : b);
    }
  }

  template <int kPair, typename At>
  static HWY_INLINE Pair Output(const At& at) {
    if constexpr (kPair == 0) {
      const auto sum_a = hn::Add(at(1), at(2));
      const auto sum_b = hn::Add(at(3), at(4));
      return {hn::Add(hn::Add(at(0), sum_a), sum_b),
              hn::MulAdd(Splat(b2), sum_b, hn::Mul(Splat(a2), sum_a))};
    } else {
      const auto difference_a = hn::Sub(at(1), at(2));
      const auto difference_b = hn::Sub(at(3), at(4));
      return {
          hn::MulAdd(Splat(b), difference_b, hn::Mul(Splat(a), difference_a)),
          hn::MulAdd(Splat(b * b2), difference_b, hn::MulAdd(Splat(a * a2), difference_a, at(5)))};
    }
  }

  template <int kPair, typename At>
  static HWY_INLINE Pair Filter(const At& at) {
    if constexpr (kPair == 0) {
      return {at(0), at(2)};
    } else {
      constexpr double scale = kPair == 1 ? ga : gb;
      constexpr double square = kPair == 1 ? a2 : b2;
      const auto even = hn::MulAdd(Splat(scale * square), at(2), hn::Mul(Splat(scale), at(0)));
      return PlusMinus(even, at(1), scale * (kPair == 1 ? a : b));
    }
  }

  template <typename At>
  static HWY_INLINE void FilterGradient(const At& at, FloatVector taps[3]) {
    const auto sum_a = hn::Add(at(1), at(2));
    const auto sum_b = hn::Add(at(3), at(4));
    const auto difference_a = hn::Sub(at(1), at(2));
    const auto difference_b = hn::Sub(at(3), at(4));
    taps[0] = hn::MulAdd(Splat(ga), sum_a, hn::MulAdd(Splat(gb), sum_b, at(0)));
    taps[1] = hn::MulAdd(Splat(ga * a), difference_a, hn::Mul(Splat(gb * b), difference_b));
    taps[2] = hn::MulAdd(Splat(ga * a2), sum_a, hn::MulAdd(Splat(gb * b2), sum_b, at(5)));
  }
};

template <>
struct Minimal<2> {
  static constexpr int kPairs = 2;
  static constexpr int kInputRows[2][2] = {{0, 3}, {1, 2}};
  static constexpr int kOutputPairs = 1;
  static constexpr int kOutputRows[1][2] = {{0, 1}};

  template <int kPair, typename At>
  static HWY_INLINE Pair Input(const At& at) {
    if constexpr (kPair == 0) return {hn::Sub(at(0), at(2)), hn::Sub(at(3), at(1))};
    return {hn::Add(at(2), at(1)), hn::Sub(at(2), at(1))};
  }

  template <int kPair, typename At>
  static HWY_INLINE Pair Gradient(const At& at) {
    if constexpr (kPair == 0) return {at(0), at(1)};
    return {hn::Add(at(0), at(1)), hn::Sub(at(0), at(1))};
  }

  template <int kPair, typename At>
  static HWY_INLINE Pair Output(const At& at) {
    return {hn::Add(at(0), hn::Add(at(1), at(2))), hn::Add(hn::Sub(at(1), at(2)), at(3))};
  }

  template <int kPair, typename At>
  static HWY_INLINE Pair Filter(const At& at) {
    if constexpr (kPair == 0) return {at(0), at(2)};
    const auto half = Splat(0.5);
    return PlusMinus(hn::Mul(half, hn::Add(at(0), at(2))), at(1), 0.5);
  }

  template <typename At>
  static HWY_INLINE void FilterGradient(const At& at, FloatVector taps[3]) {
    const auto half = Splat(0.5);
    const auto sum = hn::Mul(half, hn::Add(at(1), at(2)));
    taps[0] = hn::Add(at(0), sum);
    taps[1] = hn::Mul(half, hn::Sub(at(1), at(2)));
    taps[2] = hn::Add(sum, at(3));
  }
};

// The transforms whose results have t + 2 elements.
enum class Widening { kInput, kGradient, kFilter };

template <int kSide, Widening kKind, int kPair, typename At>
HWY_INLINE Pair WidenPair(const At& at) {
  if constexpr (kKind == Widening::kInput) return Minimal<kSide>::template Input<kPair>(at);
  if constexpr (kKind == Widening::kGradient) return Minimal<kSide>::template Gradient<kPair>(at);
  return Minimal<kSide>::template Filter<kPair>(at);
}

// Transforms a row and stores its t + 2 elements, `stride` apart. Recursion over the pairs, instead
// of a loop, makes the pair a template argument.
template <int kSide, Widening kKind, int kPair = 0>
HWY_INLINE void WidenRow(const FloatVector* row, float* to, int64_t stride) {
  if constexpr (kPair < Minimal<kSide>::kPairs) {
    const auto at = [&](int i) HWY_ATTR { return row[i]; };
    const Pair pair = WidenPair<kSide, kKind, kPair>(at);
    const auto& rows = Minimal<kSide>::kInputRows[kPair];
    hn::Store(pair.first, FloatTag(), to + rows[0] * stride);
    hn::Store(pair.second, FloatTag(), to + rows[1] * stride);
    WidenRow<kSide, kKind, kPair + 1>(row, to, stride);
  }
}

// Transforms the columns, then the rows, of source(i, j), which is kColumns wide, and stores the (t
// + 2)² elements.
template <int kSide, Widening kKind, int kColumns, int kPair = 0, typename Source>
HWY_INLINE void WidenTile(const Source& source, float* to, int64_t stride) {
  if constexpr (kPair < Minimal<kSide>::kPairs) {
    FloatVector first[kColumns];
    FloatVector second[kColumns];
#pragma GCC unroll 6
    for (int j = 0; j < kColumns; ++j) {
      const auto at = [&](int i) HWY_ATTR { return source(i, j); };
      const Pair pair = WidenPair<kSide, kKind, kPair>(at);
      first[j] = pair.first;
      second[j] = pair.second;
    }
    const auto& rows = Minimal<kSide>::kInputRows[kPair];
    WidenRow<kSide, kKind>(first, to + rows[0] * (kSide + 2) * stride, stride);
    WidenRow<kSide, kKind>(second, to + rows[1] * (kSide + 2) * stride, stride);
    WidenTile<kSide, kKind, kColumns, kPair + 1>(source, to, stride);
  }
}

// Walks the tiles of a grid in order.
class TileCursor {
 public:
  TileCursor(const TileGrid& grid, int64_t tile)
      : grid_(grid),
        image_(tile / (grid.tiles[0] * grid.tiles[1])),
        row_(tile / grid.tiles[1] % grid.tiles[0]),
        column_(tile % grid.tiles[1]) {}

  int64_t image() const { return image_; }
  // The tile's first output pixel.
  int64_t y() const { return row_ * grid_.side; }
  int64_t x() const { return column_ * grid_.side; }

  void Next() {
    if (++column_ < grid_.tiles[1]) return;
    column_ = 0;
    if (++row_ < grid_.tiles[0]) return;
    row_ = 0;
    ++image_;
  }

 private:
  const TileGrid& grid_;
  int64_t image_;
  int64_t row_;
  int64_t column_;
};

// A block of channels of one image.
template <typename T>
struct Plane {
  const T* pixels;
  Extents size;

  bool HasRow(int64_t y) const { return y >= 0 && y < size[0]; }
  bool HasColumn(int64_t x) const { return x >= 0 && x < size[1]; }
};

// Transforms the kPatch x kPatch pixels from (y, x) on; those outside the image are 0.
template <int kSide, Widening kKind, int kPatch, typename T>
HWY_INLINE void WidenPatch(const Plane<T>& plane, int64_t y, int64_t x, float* to, int64_t stride) {
  const FloatTag d;
  const int64_t row_stride = plane.size[1] * kLanes;
  const bool inside =
      y >= 0 && x >= 0 && y + kPatch <= plane.size[0] && x + kPatch <= plane.size[1];
  if (inside) {
    const T* from = plane.pixels + y * row_stride + x * kLanes;
    const auto source = [&](int i, int j)
                            HWY_ATTR { return LoadWide(d, from + i * row_stride + j * kLanes); };
    return WidenTile<kSide, kKind, kPatch>(source, to, stride);
  }
  // At the border, pixels outside the image are read from here, so that the transform needs no
  // masks.
  HWY_ALIGN static constexpr T kZeros[16] = {};
  const T* rows[kPatch];
  int64_t column_steps[kPatch];
  for (int i = 0; i < kPatch; ++i) {
    rows[i] = plane.HasRow(y + i) ? plane.pixels + (y + i) * row_stride : nullptr;
    column_steps[i] = plane.HasColumn(x + i) ? (x + i) * kLanes : -1;
  }
  const auto source = [&](int i, int j) HWY_ATTR {
    const bool present = rows[i] != nullptr && column_steps[j] >= 0;
    return LoadWide(d, present ? rows[i] + column_steps[j] : kZeros);
  };
  WidenTile<kSide, kKind, kPatch>(source, to, stride);
}

template <int kSide, Widening kKind, typename T>
void WidenTiles(const TileGrid& grid, const BlockedImages& images, const IndexRange& range,
                int64_t block, const T* pixels, const TilePlanes& planes) {
  constexpr int kPatch = kKind == Widening::kInput ? kSide + 2 : kSide;
  // Output gradients aren't padded: their tiles are cut as the output's are.
  const Extents before = kKind == Widening::kInput ? grid.padding : Extents{0, 0};
  float* to = planes.data + block * planes.block_stride;
  TileCursor tile(grid, range.begin);
  for (int64_t t = range.begin; t < range.end; ++t, tile.Next(), to += kLanes) {
    const int64_t plane_index = tile.image() * images.blocks + block;
    const Plane<T> plane{pixels + plane_index * images.block_pixels() * kLanes, images.size};
    WidenPatch<kSide, kKind, kPatch>(plane, tile.y() - before[0], tile.x() - before[1], to,
                                     planes.plane_stride);
  }
}

template <typename T>
void TransformInputTiles(const TileGrid& grid, const BlockedImages& images, const IndexRange& range,
                         int64_t block, const T* pixels, const TilePlanes& planes) {
  if (grid.side == 4)
    return WidenTiles<4, Widening::kInput>(grid, images, range, block, pixels, planes);
  WidenTiles<2, Widening::kInput>(grid, images, range, block, pixels, planes);
}

template <typename T>
void TransformGradientTiles(const TileGrid& grid, const BlockedImages& images,
                            const IndexRange& range, int64_t block, const T* pixels,
                            const TilePlanes& planes) {
  if (grid.side == 4)
    return WidenTiles<4, Widening::kGradient>(grid, images, range, block, pixels, planes);
  WidenTiles<2, Widening::kGradient>(grid, images, range, block, pixels, planes);
}

template <int kSide, int kPair = 0, typename Emit>
HWY_INLINE void NarrowRow(const FloatVector* row, const Emit& emit) {
  if constexpr (kPair < Minimal<kSide>::kOutputPairs) {
    const auto at = [&](int i) HWY_ATTR { return row[i]; };
    const Pair pair = Minimal<kSide>::template Output<kPair>(at);
    const auto& columns = Minimal<kSide>::kOutputRows[kPair];
    emit(columns[0], pair.first);
    emit(columns[1], pair.second);
    NarrowRow<kSide, kPair + 1>(row, emit);
  }
}

struct Unchanged {
  template <typename T>
  HWY_INLINE FloatVector operator()(FloatVector pixel, const T*) const {
    return pixel;
  }
};

// Applies the epilogue to the pixels of a block.
template <typename T>
class Finished {
 public:
  Finished(const PixelEpilogue& epilogue, int64_t block, const T* pixels)
      : shift_(hn::LoadU(FloatTag(), epilogue.shift + block * kLanes)),
        addend_(epilogue.addend),
        pixels_(pixels),
        rectifies_(epilogue.rectifies) {}

  // Returns the value to be stored at `to`.
  HWY_INLINE FloatVector operator()(FloatVector pixel, const T* to) const {
    const FloatTag d;
    pixel = hn::Add(pixel, shift_);
    if (addend_ != nullptr) pixel = hn::Add(pixel, hn::Load(d, addend_ + (to - pixels_)));
    return rectifies_ ? hn::Max(pixel, hn::Zero(d)) : pixel;
  }

 private:
  FloatVector shift_;
  const float* addend_;
  const T* pixels_;
  bool rectifies_;
};

// Computes Aᵀ M A of one tile, applies `finish`, and writes the pixels that are on the image.
template <int kSide, int kPair = 0, typename Finish, typename T>
HWY_INLINE void NarrowTile(const float* from, int64_t stride, const Extents& present,
                           const Finish& finish, T* to, int64_t row_stride) {
  if constexpr (kPair < Minimal<kSide>::kOutputPairs) {
    const FloatTag d;
    FloatVector first[kSide + 2];
    FloatVector second[kSide + 2];
#pragma GCC unroll 6
    for (int j = 0; j < kSide + 2; ++j) {
      const auto at = [&](int i)
                          HWY_ATTR { return hn::Load(d, from + (i * (kSide + 2) + j) * stride); };
      const Pair pair = Minimal<kSide>::template Output<kPair>(at);
      first[j] = pair.first;
      second[j] = pair.second;
    }
    const auto& rows = Minimal<kSide>::kOutputRows[kPair];
    const auto write = [&](int row, const FloatVector* values) HWY_ATTR {
      if (row >= present[0]) return;
      T* pixels = to + row * row_stride;
      NarrowRow<kSide>(values, [&](int column, FloatVector value) HWY_ATTR {
        T* pixel = pixels + column * kLanes;
        if (column < present[1]) StoreRounded(finish(value, pixel), d, pixel);
      });
    };
    write(rows[0], first);
    write(rows[1], second);
    NarrowTile<kSide, kPair + 1>(from, stride, present, finish, to, row_stride);
  }
}

template <int kSide, typename Finish, typename T>
void NarrowTiles(const TileGrid& grid, const BlockedImages& images, const IndexRange& range,
                 int64_t block, const TilePlanes& planes, const Finish& finish, T* pixels) {
  const int64_t row_stride = images.size[1] * kLanes;
  const float* from = planes.data + block * planes.block_stride;
  TileCursor tile(grid, range.begin);
  for (int64_t t = range.begin; t < range.end; ++t, tile.Next(), from += kLanes) {
    const int64_t plane = tile.image() * images.blocks + block;
    T* to =
        pixels + (plane * images.block_pixels() + tile.y() * images.size[1] + tile.x()) * kLanes;
    const Extents present{images.size[0] - tile.y(), images.size[1] - tile.x()};
    // With constant extents, the compiler removes the comparisons from the inlined loop.
    if (present[0] >= kSide && present[1] >= kSide) {
      NarrowTile<kSide>(from, planes.plane_stride, {kSide, kSide}, finish, to, row_stride);
    } else {
      NarrowTile<kSide>(from, planes.plane_stride, present, finish, to, row_stride);
    }
  }
}

template <typename T>
void TransformOutputTiles(const TileGrid& grid, const BlockedImages& images,
                          const IndexRange& range, int64_t block, const TilePlanes& planes,
                          const PixelEpilogue& epilogue, T* pixels) {
  const auto narrow = [&](const auto& finish) {
    if (grid.side == 4) return NarrowTiles<4>(grid, images, range, block, planes, finish, pixels);
    NarrowTiles<2>(grid, images, range, block, planes, finish, pixels);
  };
  if (epilogue.shift == nullptr) return narrow(Unchanged());
  narrow(Finished<T>(epilogue, block, pixels));
}

// Loads a block of kLanes outputs x kLanes inputs of the filters as [tap][input][output lane].
// Filters outside are 0.
template <typename T>
void LoadFilterBlock(const Filters& shape, const T* filters, int64_t output_block,
                     int64_t input_block, float* taps) {
  const FloatTag d;
  const int64_t outputs = std::min(kLanes, shape.outputs - output_block * kLanes);
  const int64_t inputs = std::min(kLanes, shape.inputs - input_block * kLanes);
  const T* from = filters + (output_block * kLanes * shape.inputs + input_block * kLanes) * kTaps;
  int64_t stride = shape.inputs * kTaps;
  // The loads below read whole vectors of whole blocks, which an incomplete block doesn't have.
  HWY_ALIGN T padded[kFilterBlock];
  if (outputs < kLanes || inputs < kLanes) {
    std::fill_n(padded, kFilterBlock, T{});
    for (int64_t o = 0; o < outputs; ++o)
      std::copy_n(from + o * stride, inputs * kTaps, padded + o * kLanes * kTaps);
    from = padded;
    stride = kLanes * kTaps;
  }
  // An output's filters are contiguous, [input][tap]. Lanes x lanes of these numbers at a time are
  // transposed, which makes vectors of outputs.
  FloatVector rows[kLanes];
  for (int64_t first = 0; first < kLanes * kTaps; first += kLanes) {
    for (int64_t o = 0; o < kLanes; ++o) rows[o] = LoadWide(d, from + o * stride + first);
    TransposeLanes(rows);
    for (int64_t i = 0; i < kLanes; ++i) {
      const int64_t input = (first + i) / kTaps;
      const int64_t tap = (first + i) % kTaps;
      hn::Store(rows[i], d, taps + (tap * kLanes + input) * kLanes);
    }
  }
}

// The reverse of LoadFilterBlock. Filters outside are left out.
template <typename T>
void StoreFilterBlock(const Filters& shape, const float* taps, int64_t output_block,
                      int64_t input_block, T* filters) {
  const FloatTag d;
  const int64_t outputs = std::min(kLanes, shape.outputs - output_block * kLanes);
  const int64_t inputs = std::min(kLanes, shape.inputs - input_block * kLanes);
  const bool whole = outputs == kLanes && inputs == kLanes;
  T* target = filters + (output_block * kLanes * shape.inputs + input_block * kLanes) * kTaps;
  const int64_t target_stride = shape.inputs * kTaps;
  HWY_ALIGN T padded[kFilterBlock];
  T* to = whole ? target : padded;
  const int64_t stride = whole ? target_stride : kLanes * kTaps;
  FloatVector rows[kLanes];
  for (int64_t first = 0; first < kLanes * kTaps; first += kLanes) {
    for (int64_t i = 0; i < kLanes; ++i) {
      const int64_t input = (first + i) / kTaps;
      const int64_t tap = (first + i) % kTaps;
      rows[i] = hn::Load(d, taps + (tap * kLanes + input) * kLanes);
    }
    TransposeLanes(rows);
    for (int64_t o = 0; o < kLanes; ++o) StoreRounded(rows[o], d, to + o * stride + first);
  }
  if (whole) return;
  for (int64_t o = 0; o < outputs; ++o)
    std::copy_n(padded + o * kLanes * kTaps, inputs * kTaps, target + o * target_stride);
}

// Turns each filter by 180 degrees and swaps inputs and outputs: the result is [tap][output][input
// lane].
void TransposeFilterBlock(const float* taps, float* transposed) {
  const FloatTag d;
  FloatVector rows[kLanes];
  for (int64_t tap = 0; tap < kTaps; ++tap) {
    const float* from = taps + (kTaps - 1 - tap) * kLanes * kLanes;
    for (int64_t i = 0; i < kLanes; ++i) rows[i] = hn::Load(d, from + i * kLanes);
    TransposeLanes(rows);
    for (int64_t i = 0; i < kLanes; ++i)
      hn::Store(rows[i], d, transposed + (tap * kLanes + i) * kLanes);
  }
}

template <int kSide, typename T>
void WidenFilters(const Filters& shape, const T* filters, const IndexRange& range,
                  int64_t first_block, const FilterPanel& panel) {
  const FloatTag d;
  const int64_t row_stride = panel.blocks * kLanes;
  HWY_ALIGN float taps[kFilterBlock];
  HWY_ALIGN float transposed[kFilterBlock];
  for (int64_t summed = range.begin; summed < range.end; ++summed) {
    for (int64_t j = 0; j < panel.blocks; ++j) {
      const int64_t produced = first_block + j;
      if (shape.transposed) {
        LoadFilterBlock(shape, filters, summed, produced, taps);
        TransposeFilterBlock(taps, transposed);
      } else {
        LoadFilterBlock(shape, filters, produced, summed, taps);
      }
      const float* from = shape.transposed ? transposed : taps;
      float* to = panel.data + (summed - range.begin) * kLanes * row_stride + j * kLanes;
      for (int64_t k = 0; k < kLanes; ++k) {
        const auto source = [&](int row, int column) HWY_ATTR {
          return hn::Load(d, from + ((row * 3 + column) * kLanes + k) * kLanes);
        };
        WidenTile<kSide, Widening::kFilter, 3>(source, to + k * row_stride, panel.plane_stride);
      }
    }
  }
}

template <typename T>
void TransformFilters(int64_t side, const Filters& shape, const T* filters, const IndexRange& range,
                      int64_t first_block, const FilterPanel& panel) {
  if (side == 4) return WidenFilters<4>(shape, filters, range, first_block, panel);
  WidenFilters<2>(shape, filters, range, first_block, panel);
}

// Computes Gᵀ dU G for the filters of one input channel and a vector of output channels, where dU
// is the sum of the parts' sums, added in order.
template <int kSide>
void NarrowFilter(const float* sums, int64_t sum_count, int64_t sum_stride, int64_t plane_stride,
                  float* taps) {
  const FloatTag d;
  constexpr int kWidth = kSide + 2;
  FloatVector columns[3][kWidth];
  for (int j = 0; j < kWidth; ++j) {
    FloatVector column[kWidth];
    for (int i = 0; i < kWidth; ++i) {
      const float* at = sums + (i * kWidth + j) * plane_stride;
      column[i] = hn::Load(d, at);
      for (int64_t p = 1; p < sum_count; ++p)
        column[i] = hn::Add(column[i], hn::Load(d, at + p * sum_stride));
    }
    FloatVector narrow[3];
    Minimal<kSide>::FilterGradient([&](int i) HWY_ATTR { return column[i]; }, narrow);
    for (int i = 0; i < 3; ++i) columns[i][j] = narrow[i];
  }
  for (int i = 0; i < 3; ++i) {
    FloatVector row[3];
    Minimal<kSide>::FilterGradient([&](int j) HWY_ATTR { return columns[i][j]; }, row);
    for (int j = 0; j < 3; ++j) hn::Store(row[j], d, taps + (i * 3 + j) * kLanes * kLanes);
  }
}

template <int kSide, typename T>
void NarrowFilters(const Filters& shape, int64_t input_block, int64_t output_block,
                   const float* sums, int64_t sum_count, int64_t sum_stride, int64_t plane_stride,
                   int64_t row_stride, T* gradients) {
  HWY_ALIGN float taps[kFilterBlock];
  for (int64_t i = 0; i < kLanes; ++i) {
    NarrowFilter<kSide>(sums + i * row_stride, sum_count, sum_stride, plane_stride,
                        taps + i * kLanes);
  }
  StoreFilterBlock(shape, taps, output_block, input_block, gradients);
}

template <typename T>
void TransformFilterGradients(int64_t side, const Filters& shape, int64_t input_block,
                              int64_t output_block, const float* sums, int64_t sum_count,
                              int64_t sum_stride, int64_t plane_stride, int64_t row_stride,
                              T* gradients) {
  const auto narrow = side == 4 ? NarrowFilters<4, T> : NarrowFilters<2, T>;
  narrow(shape, input_block, output_block, sums, sum_count, sum_stride, plane_stride, row_stride,
         gradients);
}

template <typename T>
WinogradTransforms<T> TransformsOf() {
  return {TransformInputTiles<T>, TransformGradientTiles<T>, TransformOutputTiles<T>,
          TransformFilters<T>, TransformFilterGradients<T>};
}

std::tuple<WinogradTransforms<float>, WinogradTransforms<BFloat16>> AllTransforms() {
  return {TransformsOf<float>(), TransformsOf<BFloat16>()};
}

int64_t WinogradLanesImpl() { return kLanes; }

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(AllTransforms);
HWY_EXPORT(WinogradLanesImpl);

int64_t WinogradLanes() { return HWY_DYNAMIC_DISPATCH(WinogradLanesImpl)(); }

template <typename T>
WinogradTransforms<T> TransformsOf() {
  return std::get<WinogradTransforms<T>>(HWY_DYNAMIC_DISPATCH(AllTransforms)());
}

template WinogradTransforms<float> TransformsOf<float>();
template WinogradTransforms<BFloat16> TransformsOf<BFloat16>();

}  // namespace skiff
#endif
