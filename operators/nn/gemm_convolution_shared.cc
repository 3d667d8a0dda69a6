#include "operators/nn/gemm_convolution_shared.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "operators/nn/tile_product_shared.h"

namespace skiff {
namespace {

// Summed channels whose columns are gathered at a time.
constexpr int64_t kChunkChannels = 1024;
constexpr int64_t kGradientChunkChannels = 512;
// What LoadFilterTaps makes of the largest filter, for 16 lanes.
constexpr size_t kFilterBlockFloats = 16 * 16 * kMaxGemmTaps;

GemmImages BlockedImages(const ImageDims& image, int64_t lanes) {
  return {CeilDiv(image.channels, lanes), image.size};
}

// Calls visit(tile, image, row, begin, end) for the pieces of rows, columns [begin, end), that the
// tiles, numbered by image, row, column, consist of.
template <typename Visit>
void ForEachRow(const IndexRange& tiles, const Extents& count, const Visit& visit) {
  for (int64_t tile = tiles.begin; tile < tiles.end;) {
    const int64_t row = tile / count[1];
    const int64_t begin = tile % count[1];
    const int64_t end = std::min(count[1], begin + tiles.end - tile);
    visit(tile, row / count[0], row % count[0], begin, end);
    tile += end - begin;
  }
}

// The same for pieces of images: visit(tile, image, first pixel, pixels).
template <typename Visit>
void ForEachImage(const IndexRange& tiles, int64_t pixels, const Visit& visit) {
  for (int64_t tile = tiles.begin; tile < tiles.end;) {
    const int64_t first = tile % pixels;
    const int64_t size = std::min(pixels - first, tiles.end - tile);
    visit(tile, tile / pixels, first, size);
    tile += size;
  }
}

// Copies a vector of `lanes` floats, 8 or 16: of a known size, so that no call is made.
void CopyLanes(const float* from, int64_t lanes, float* to) {
  if (lanes == 16) {
    std::memcpy(to, from, 64);
  } else {
    std::memcpy(to, from, 32);
  }
}

struct Columns {
  const GemmPhase& phase;
  const GemmImages& source;
  Extents step;
  int64_t lanes;
  int64_t block_stride;

  // Gathers `blocks` of (tap, block of channels) for the tiles; tile `tiles.begin` becomes the
  // first. What lies outside of the image is 0.
  void Gather(const IndexRange& tiles, const IndexRange& blocks, const float* images,
              float* columns) const {
    for (int64_t b = blocks.begin; b < blocks.end; ++b) {
      const GemmTap& tap = phase.taps[static_cast<size_t>(b / source.blocks)];
      float* to = columns + (b - blocks.begin) * block_stride;
      const IndexRange rows = ValidOutputs(phase.count[0], source.size[0], step[0], tap.offset[0]);
      const IndexRange inside =
          ValidOutputs(phase.count[1], source.size[1], step[1], tap.offset[1]);
      ForEachRow(tiles, phase.count,
                 [&](int64_t tile, int64_t image, int64_t row, int64_t begin, int64_t end) {
                   float* piece = to + (tile - tiles.begin) * lanes;
                   const bool is_inside = row >= rows.begin && row < rows.end;
                   const int64_t first = is_inside ? std::clamp(inside.begin, begin, end) : end;
                   const int64_t last = is_inside ? std::clamp(inside.end, first, end) : end;
                   std::fill_n(piece, (first - begin) * lanes, 0.0f);
                   const int64_t from_row = source.Position(
                       image, b % source.blocks, (row * step[0] + tap.offset[0]) * source.size[1]);
                   const float* from =
                       images + (from_row + first * step[1] + tap.offset[1]) * lanes;
                   CopyPixels(from, last - first, piece + (first - begin) * lanes);
                   std::fill_n(piece + (last - begin) * lanes, (end - last) * lanes, 0.0f);
                 });
    }
  }

 private:
  void CopyPixels(const float* from, int64_t count, float* to) const {
    if (count <= 0) return;
    if (step[1] == 1) {
      std::memcpy(to, from, static_cast<size_t>(count * lanes) * sizeof(float));
      return;
    }
    for (int64_t i = 0; i < count; ++i)
      CopyLanes(from + i * step[1] * lanes, lanes, to + i * lanes);
  }
};

// The distance between blocks of columns or products. An odd number of tiles keeps the blocks off
// one cache set.
int64_t BlockStride(int64_t tiles, int64_t lanes) { return (tiles | 1) * lanes; }

// Blocks of at most `most`, all but the last equal.
int64_t EqualChunk(int64_t total, int64_t most) {
  return total == 0 ? 1 : CeilDiv(total, CeilDiv(total, most));
}

// Whether each output pixel sees the input pixel at its own place, and no other.
bool IsPointwise(const Convolution& conv) {
  const Extents one{1, 1};
  return conv.window.kernel == one && conv.window.stride == one &&
         conv.window.pad_begin == Extents{} && conv.input.size == conv.output.size;
}

FilterTaps TapsOf(const Convolution& conv) {
  return {conv.output.channels, conv.input.channels, conv.window.kernel[0] * conv.window.kernel[1]};
}

}  // namespace

GemmCorrelation::GemmCorrelation(const Convolution& conv, bool gradient_of_input, bool has_epilogue,
                                 int64_t parts)
    : lanes_(FloatLanes()),
      filters_(TapsOf(conv)),
      gradient_of_input_(gradient_of_input),
      batch_(conv.input.batch),
      source_(BlockedImages(gradient_of_input ? conv.output : conv.input, lanes_)),
      produced_(BlockedImages(gradient_of_input ? conv.input : conv.output, lanes_)),
      step_{1, 1},
      source_step_(conv.window.stride) {
  if (gradient_of_input) std::swap(step_, source_step_);
  for (int64_t row = 0; row < std::min(step_[0], produced_.size[0]); ++row) {
    for (int64_t column = 0; column < std::min(step_[1], produced_.size[1]); ++column) {
      AddPhase(conv, {row, column});
    }
  }
  reads_directly_ = IsPointwise(conv);
  writes_directly_ = step_ == Extents{1, 1} && !has_epilogue;
  int64_t most_blocks = 0;
  int64_t most_tiles = 0;
  for (const GemmPhase& phase : phases_) {
    most_blocks = std::max(most_blocks, SummedBlocks(phase));
    most_tiles = std::max(most_tiles, batch_ * phase.count[0] * phase.count[1]);
  }
  chunk_blocks_ = EqualChunk(most_blocks, kChunkChannels / lanes_);
  const int64_t product_blocks = writes_directly_ ? 0 : produced_.blocks;
  const int64_t fitting = kCacheFloats / ((chunk_blocks_ + product_blocks) * lanes_);
  const int64_t at_most = std::clamp(fitting / kRowGroup, int64_t{1}, int64_t{16}) * kRowGroup;
  chunk_tiles_ = EqualChunk(most_tiles, at_most);
  parts_ = std::min(parts, CeilDiv(most_tiles, chunk_tiles_) * panels());
  column_floats_ = reads_directly_ ? 0 : chunk_blocks_ * BlockStride(chunk_tiles_, lanes_);
  product_floats_ = product_blocks * BlockStride(chunk_tiles_, lanes_);
}

void GemmCorrelation::AddPhase(const Convolution& conv, const Extents& origin) {
  const Window& window = conv.window;
  GemmPhase phase;
  phase.origin = origin;
  for (size_t d = 0; d < 2; ++d) {
    phase.count[d] = CeilDiv(produced_.size[d] - origin[d], step_[d]);
  }
  for (int64_t i = 0; i < window.kernel[0]; ++i) {
    for (int64_t j = 0; j < window.kernel[1]; ++j) {
      const Extents at = {i * window.dilation[0] - window.pad_begin[0],
                          j * window.dilation[1] - window.pad_begin[1]};
      GemmTap tap{.index = i * window.kernel[1] + j, .offset = at};
      if (gradient_of_input_) {
        // Input pixel y reaches output pixel (y - at) / stride, if that is whole.
        const Extents back = {origin[0] - at[0], origin[1] - at[1]};
        if (back[0] % step_[0] != 0 || back[1] % step_[1] != 0) continue;
        tap.offset = {back[0] / step_[0], back[1] / step_[1]};
      }
      phase.taps.push_back(tap);
    }
  }
  phase.packed_offset = packed_floats_;
  packed_floats_ += SummedBlocks(phase) * lanes_ * produced_.blocks * lanes_;
  phases_.push_back(std::move(phase));
}

void GemmCorrelation::PackFilters(const float* filters, float* packed) const {
  ParallelFor(produced_.blocks * source_.blocks, 1, [&](int64_t begin, int64_t end) {
    alignas(64) float taps[kFilterBlockFloats];
    alignas(64) float scratch[kFilterBlockFloats];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t produced = i / source_.blocks;
      const int64_t summed = i % source_.blocks;
      LoadFilterTaps(filters_, filters, gradient_of_input_ ? summed : produced,
                     gradient_of_input_ ? produced : summed, gradient_of_input_, scratch, taps);
      const int64_t panel = produced / 2;
      const int64_t row_stride = PanelBlocks(panel) * lanes_;
      for (const GemmPhase& phase : phases_) {
        float* to = packed + PanelOffset(phase, panel) + produced % 2 * lanes_;
        for (size_t t = 0; t < phase.taps.size(); ++t) {
          const float* from = taps + phase.taps[t].index * lanes_ * lanes_;
          float* rows =
              to + (static_cast<int64_t>(t) * source_.blocks + summed) * lanes_ * row_stride;
          for (int64_t k = 0; k < lanes_; ++k)
            CopyLanes(from + k * lanes_, lanes_, rows + k * row_stride);
        }
      }
    }
  });
}

void GemmCorrelation::Run(const float* images, const float* packed, const PixelEpilogue& epilogue,
                          float* workspace, float* outputs) const {
  for (const GemmPhase& phase : phases_)
    RunPhase(phase, images, packed, epilogue, workspace, outputs);
}

void GemmCorrelation::RunPhase(const GemmPhase& phase, const float* images, const float* packed,
                               const PixelEpilogue& epilogue, float* workspace,
                               float* outputs) const {
  const int64_t tiles = batch_ * phase.count[0] * phase.count[1];
  const int64_t chunks = CeilDiv(tiles, chunk_tiles_);
  // The panels of a chunk are shared where there are fewer chunks than parts.
  const int64_t cuts = std::min(panels(), CeilDiv(parts_, chunks));
  ForEachPart(parts_, [&](int64_t part) {
    float* mine = workspace + part * (column_floats_ + product_floats_);
    const IndexRange items = Share(chunks * cuts, part, parts_);
    for (int64_t i = items.begin; i < items.end; ++i) {
      const int64_t first = i / cuts * chunk_tiles_;
      RunTiles(phase, {first, std::min(tiles, first + chunk_tiles_)},
               Share(panels(), i % cuts, cuts), images, packed, epilogue, mine, outputs);
    }
  });
}

void GemmCorrelation::RunTiles(const GemmPhase& phase, const IndexRange& tiles,
                               const IndexRange& panels, const float* images, const float* packed,
                               const PixelEpilogue& epilogue, float* workspace,
                               float* outputs) const {
  const int64_t block_stride = BlockStride(chunk_tiles_, lanes_);
  const Columns columns{phase, source_, source_step_, lanes_, block_stride};
  float* products = workspace + column_floats_;
  const int64_t blocks = SummedBlocks(phase);
  for (int64_t begin = 0; begin < blocks; begin += chunk_blocks_) {
    const int64_t end = std::min(blocks, begin + chunk_blocks_);
    if (!reads_directly_) columns.Gather(tiles, {begin, end}, images, workspace);
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      TileProduct product{.tiles = workspace,
                          .tiles_block_stride = block_stride,
                          .blocks = end - begin,
                          .filters = packed + PanelOffset(phase, panel) +
                                     begin * lanes_ * PanelBlocks(panel) * lanes_,
                          .panel_blocks = PanelBlocks(panel),
                          .products = products + 2 * panel * block_stride,
                          .products_block_stride = block_stride,
                          .accumulate = begin > 0};
      if (!reads_directly_ && !writes_directly_) {
        MultiplyTiles(product, Size(tiles));
        continue;
      }
      if (reads_directly_) product.tiles_block_stride = source_.pixels() * lanes_;
      if (writes_directly_) product.products_block_stride = produced_.pixels() * lanes_;
      float* const panel_products = product.products;
      ForEachImage(tiles, produced_.pixels(),
                   [&](int64_t tile, int64_t image, int64_t pixel, int64_t count) {
                     const int64_t in_chunk = (tile - tiles.begin) * lanes_;
                     product.tiles = reads_directly_
                                         ? images + source_.Position(image, begin, pixel) * lanes_
                                         : workspace + in_chunk;
                     product.products =
                         writes_directly_
                             ? outputs + produced_.Position(image, 2 * panel, pixel) * lanes_
                             : panel_products + in_chunk;
                     MultiplyTiles(product, count);
                   });
    }
  }
  if (writes_directly_) return;
  for (int64_t panel = panels.begin; panel < panels.end; ++panel)
    Write(phase, tiles, panel, blocks == 0 ? nullptr : products, epilogue, outputs);
}

void GemmCorrelation::Write(const GemmPhase& phase, const IndexRange& tiles, int64_t panel,
                            const float* products, const PixelEpilogue& epilogue,
                            float* outputs) const {
  const int64_t block_stride = BlockStride(chunk_tiles_, lanes_);
  for (int64_t block = 2 * panel; block < 2 * panel + PanelBlocks(panel); ++block) {
    const float* from = products == nullptr ? nullptr : products + block * block_stride;
    const float* shift = epilogue.shift == nullptr ? nullptr : epilogue.shift + block * lanes_;
    ForEachRow(tiles, phase.count,
               [&](int64_t tile, int64_t image, int64_t row, int64_t begin, int64_t end) {
                 const int64_t target_row = phase.origin[0] + row * step_[0];
                 const int64_t row_start = produced_.Position(
                     image, block, target_row * produced_.size[1] + phase.origin[1]);
                 for (int64_t column = begin; column < end; ++column) {
                   const int64_t at = (row_start + column * step_[1]) * lanes_;
                   if (from == nullptr) {
                     std::fill_n(outputs + at, lanes_, 0.0f);
                     continue;
                   }
                   const float* pixel = from + (tile - tiles.begin + column - begin) * lanes_;
                   if (shift == nullptr) {
                     CopyLanes(pixel, lanes_, outputs + at);
                     continue;
                   }
                   for (int64_t k = 0; k < lanes_; ++k) {
                     const float sum =
                         pixel[k] + shift[k] +
                         (epilogue.addend == nullptr ? 0.0f : epilogue.addend[at + k]);
                     outputs[at + k] = epilogue.rectifies && sum < 0.0f ? 0.0f : sum;
                   }
                 }
               });
  }
}

GemmFilterGradient::GemmFilterGradient(const Convolution& conv, int64_t parts)
    : lanes_(FloatLanes()),
      filters_(TapsOf(conv)),
      batch_(conv.input.batch),
      images_(BlockedImages(conv.input, lanes_)),
      outputs_(BlockedImages(conv.output, lanes_)),
      stride_(conv.window.stride) {
  const Window& window = conv.window;
  phase_.count = conv.output.size;
  for (int64_t i = 0; i < window.kernel[0]; ++i) {
    for (int64_t j = 0; j < window.kernel[1]; ++j) {
      phase_.taps.push_back({.index = i * window.kernel[1] + j,
                             .offset = {i * window.dilation[0] - window.pad_begin[0],
                                        j * window.dilation[1] - window.pad_begin[1]}});
    }
  }
  reads_directly_ = IsPointwise(conv);
  block_parts_ = std::min(parts, SummedBlocks());
  parts_ = block_parts_ * std::clamp(parts / block_parts_, int64_t{1}, panels());
  // The order of summation follows from the chunks, so they don't depend on the parts.
  chunk_blocks_ = EqualChunk(SummedBlocks(), kGradientChunkChannels / lanes_);
  const int64_t fitting = kCacheFloats / ((chunk_blocks_ + outputs_.blocks) * lanes_);
  chunk_tiles_ = EqualChunk(batch_ * phase_.count[0] * phase_.count[1],
                            std::clamp(fitting, int64_t{32}, int64_t{512}));
  sum_floats_ = SummedBlocks() * lanes_ * panels() * 2 * lanes_;
  column_floats_ = reads_directly_ ? 0 : chunk_blocks_ * BlockStride(chunk_tiles_, lanes_);
}

void GemmFilterGradient::Run(const float* images, const float* output_gradients, float* workspace,
                             float* filter_gradients) const {
  float* sums = workspace + parts_ * column_floats_;
  const int64_t panel_parts = parts_ / block_parts_;
  ForEachPart(parts_, [&](int64_t part) {
    Sum(Share(SummedBlocks(), part % block_parts_, block_parts_),
        Share(panels(), part / block_parts_, panel_parts), images, output_gradients,
        workspace + part * column_floats_, sums);
  });
  ForEachPart(images_.blocks * outputs_.blocks, [&](int64_t i) {
    Store(i % images_.blocks, i / images_.blocks, sums, filter_gradients);
  });
}

void GemmFilterGradient::Sum(const IndexRange& blocks, const IndexRange& panels,
                             const float* images, const float* output_gradients, float* columns,
                             float* sums) const {
  const int64_t block_stride = BlockStride(chunk_tiles_, lanes_);
  const Columns gathered{phase_, images_, stride_, lanes_, block_stride};
  const int64_t tiles = batch_ * outputs_.pixels();
  for (int64_t first = 0; first < tiles; first += chunk_tiles_) {
    const IndexRange range{first, std::min(tiles, first + chunk_tiles_)};
    for (int64_t begin = blocks.begin; begin < blocks.end; begin += chunk_blocks_) {
      const int64_t end = std::min(blocks.end, begin + chunk_blocks_);
      if (!reads_directly_) gathered.Gather(range, {begin, end}, images, columns);
      for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
        const int64_t row_floats = PanelBlocks(panel) * lanes_;
        float* products =
            sums + panel * SummedBlocks() * lanes_ * 2 * lanes_ + begin * lanes_ * row_floats;
        ForEachImage(
            range, outputs_.pixels(),
            [&](int64_t tile, int64_t image, int64_t pixel, int64_t count) {
              MultiplyGradients(
                  {.tiles = reads_directly_
                                ? images + images_.Position(image, begin, pixel) * lanes_
                                : columns + (tile - first) * lanes_,
                   .gradients =
                       output_gradients + outputs_.Position(image, 2 * panel, pixel) * lanes_,
                   .tiles_block_stride = reads_directly_ ? images_.pixels() * lanes_ : block_stride,
                   .gradients_block_stride = outputs_.pixels() * lanes_,
                   .blocks = end - begin,
                   .panel_blocks = PanelBlocks(panel),
                   .products = products,
                   .accumulate = tile > 0},
                  count);
            });
      }
    }
  }
}

void GemmFilterGradient::Store(int64_t input_block, int64_t output_block, const float* sums,
                               float* filter_gradients) const {
  alignas(64) float taps[kFilterBlockFloats];
  alignas(64) float scratch[kFilterBlockFloats];
  const int64_t panel = output_block / 2;
  const int64_t row_floats = PanelBlocks(panel) * lanes_;
  const float* from =
      sums + panel * SummedBlocks() * lanes_ * 2 * lanes_ + output_block % 2 * lanes_;
  for (int64_t t = 0; t < filters_.taps; ++t) {
    const float* rows = from + (t * images_.blocks + input_block) * lanes_ * row_floats;
    for (int64_t k = 0; k < lanes_; ++k)
      CopyLanes(rows + k * row_floats, lanes_, taps + (t * lanes_ + k) * lanes_);
  }
  StoreFilterTaps(filters_, taps, output_block, input_block, scratch, filter_gradients);
}

}  // namespace skiff
