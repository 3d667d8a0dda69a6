// A copy between layouts transposes, for each channel block, [block, positions] and [positions,
// block]. One side is read or written with a stride of `positions` elements. In tiles of kTile
// positions, the lines of that side are used whole while they are in the cache. It moves each byte
// once in each direction; the work is all memory traffic.
#include "framework/tensor/layout_copy.h"

#include <algorithm>
#include <cstring>

#include "framework/base/parallel.h"

namespace skiff {
namespace {

// The number of positions of one channel block that are transposed together: 16 cache lines.
constexpr int64_t kTile = 16;

// Calls start(blocked, filled) for each channel block of a blocked [N, ceil(C/B), P, B], where P
// counts the positions of one channel: the offset of its first element, and how many of its
// channels exist. Calls then move(plain, blocked) for each element: its offsets there and in the
// plain [N, C, P]. The grain gives each thread about 4096 elements or more.
template <typename Start, typename Move>
void ForEachChannelBlock(int64_t batch, int64_t channels, int64_t positions, int64_t block,
                         const Start& start, const Move& move) {
  const int64_t blocks = (channels + block - 1) / block;
  ParallelFor(batch * blocks, std::max<int64_t>(1, 4096 / (positions * block + 1)),
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t channel = i % blocks * block;
                  const int64_t filled = std::min(block, channels - channel);
                  const int64_t plain = (i / blocks * channels + channel) * positions;
                  const int64_t blocked = i * positions * block;
                  start(blocked, filled);
                  for (int64_t tile = 0; tile < positions; tile += kTile) {
                    const int64_t stop = std::min(positions, tile + kTile);
                    for (int64_t c = 0; c < filled; ++c) {
                      for (int64_t p = tile; p < stop; ++p) {
                        move(plain + c * positions + p, blocked + p * block + c);
                      }
                    }
                  }
                }
              });
}

template <typename T>
void CopyElements(const Tensor& from, Tensor* to) {
  const Shape& shape = from.shape();
  const int64_t positions = shape.element_count(2, shape.rank());
  const T* source = static_cast<const T*>(from.raw_data());
  T* target = static_cast<T*>(to->raw_data());
  if (from.layout().is_plain()) {
    const int64_t block = to->layout().channel_block;
    // Padding must be zero: kernels compute on it, and ops that keep zeros rely on it.
    const auto pad = [=](int64_t blocked, int64_t filled) {
      if (filled < block) std::fill_n(target + blocked, positions * block, T{});
    };
    ForEachChannelBlock(shape[0], shape[1], positions, block, pad,
                        [=](int64_t plain, int64_t blocked) { target[blocked] = source[plain]; });
  } else {
    const auto no_padding = [](int64_t, int64_t) {};
    ForEachChannelBlock(shape[0], shape[1], positions, from.layout().channel_block, no_padding,
                        [=](int64_t plain, int64_t blocked) { target[plain] = source[blocked]; });
  }
}

}  // namespace

void CopyBetweenLayouts(const Tensor& from, Tensor* to) {
  if (from.layout() == to->layout()) {
    CopyTensor(from, to);
    return;
  }
  SKIFF_ENFORCE(from.shape() == to->shape() && from.dtype() == to->dtype(), kInvalidArgument,
                "copy of ", from.dtype(), " ", from.shape(), " into ", to->dtype(), " ",
                to->shape());
  const bool knows_way = (from.layout().is_plain() || to->layout().is_plain()) &&
                         !from.is_selected_rows() && !to->is_selected_rows();
  SKIFF_ENFORCE(knows_way, kUnimplemented, "copy from ", from.layout(), " to ", to->layout());
  SKIFF_ENFORCE(from.place().is_cpu() && to->place().is_cpu(), kUnimplemented, "copy from ",
                from.layout(), " to ", to->layout(), " on ", from.place());
  if (from.element_count() == 0) return;
  // By size, as bits: a copy needn't know what the elements mean.
  switch (SizeOf(from.dtype())) {
    case 2:
      CopyElements<uint16_t>(from, to);
      break;
    case 4:
      CopyElements<uint32_t>(from, to);
      break;
    case 8:
      CopyElements<uint64_t>(from, to);
      break;
    default:
      Throw(ErrorCode::kUnimplemented, "copy from ", from.layout(), " to ", to->layout(), " of ",
            from.dtype());
  }
}

}  // namespace skiff
