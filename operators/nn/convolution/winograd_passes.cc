// A pass makes the tiles' planes (input transform), multiplies them with the transformed filters
// plane by plane, and brings the products back (output transform). Planes are (side + 2)² / side²
// times as large as the images, 2.25 for side 4, so they should stay in caches. There are two ways
// to cut the work:
//
// - By tiles, if the transformed filters are small or there are many tiles: a part takes some tiles
//   at a time through all three steps, with all channels. Its planes stay in its second-level
//   cache, and it reads the transformed filters, a derived form, once for each block of tiles.
// - By filters, if there are few tiles: all tiles are transformed first. Then a part takes a panel
//   of filters at a time, transforms it on the fly, and multiplies it with all tiles. So it reads
//   filters untransformed, which is a quarter of the bytes of their planes (side 4).
//
// The gradient of the filters chooses in the same manner between sums over some tiles for all
// filters and sums over all tiles for some filters.
#include "operators/nn/convolution/winograd_passes.h"

#include <algorithm>
#include <vector>

#include "framework/base/parallel.h"

namespace skiff {
namespace {

// The floats that a part may hold in the second-level cache, with room for what streams through it.
constexpr int64_t kCacheFloats = 640 * 1024 / 4;
// Transformed filters larger than this are made on the fly if there are few tiles to share them.
constexpr int64_t kKeptFilterFloats = 1024 * 1024;
// The tiles that one call of the product's kernel takes (14 with 32 registers).
constexpr int64_t kRowGroup = 14;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Returns the stride of planes of `floats` floats: whole cache lines, and one more. With strides
// that are powers of two, all planes of a tile would map to one cache set.
int64_t PlaneStride(int64_t floats) { return CeilDiv(floats, 16) * 16 + 16; }

TileGrid GridOf(const Extents& output_size, int64_t batch, int64_t side, const Extents& padding) {
  return {.side = side,
          .batch = batch,
          .tiles = {CeilDiv(output_size[0], side), CeilDiv(output_size[1], side)},
          .padding = padding};
}

// Returns range `index` of `count` nearly equal ones.
IndexRange Share(int64_t total, int64_t index, int64_t count) {
  return {total * index / count, total * (index + 1) / count};
}

int64_t Size(const IndexRange& range) { return range.end - range.begin; }

// Calls body(index) for each index in [0, count), each on a thread of its own if there are enough.
template <typename Body>
void ForEachPart(int64_t count, const Body& body) {
  ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

}  // namespace

bool IsWinogradConvolution(const Convolution& conv) {
  const Window& window = conv.window;
  const Extents three{3, 3};
  const Extents one{1, 1};
  // With more, 2 - padding, the padding of the gradient of the input, would be negative.
  const auto small = [](const Extents& padding) {
    return padding[0] >= 0 && padding[0] <= 2 && padding[1] >= 0 && padding[1] <= 2;
  };
  return window.kernel == three && window.stride == one && window.dilation == one &&
         conv.groups == 1 && small(window.pad_begin) && small(window.pad_end);
}

int64_t WinogradTileSide(const Extents& output_size) {
  const auto multiplications = [&](int64_t side) {
    return CeilDiv(output_size[0], side) * CeilDiv(output_size[1], side) * (side + 2) * (side + 2);
  };
  return multiplications(4) <= multiplications(2) ? 4 : 2;
}

template <typename T>
WinogradCorrelation<T>::WinogradCorrelation(const Convolution& conv, bool gradient_of_input,
                                            int64_t side, int64_t parts)
    : lanes_(WinogradLanes()),
      images_{CeilDiv(conv.input.channels, lanes_), conv.input.size},
      outputs_{CeilDiv(conv.output.channels, lanes_), conv.output.size},
      filters_{conv.output.channels, conv.input.channels, gradient_of_input} {
  Extents padding = conv.window.pad_begin;
  if (gradient_of_input) {
    std::swap(images_, outputs_);
    // The gradient of the input is a full correlation with the turned filters: padding p becomes
    // kernel - 1 - p.
    padding = {2 - padding[0], 2 - padding[1]};
  }
  grid_ = GridOf(outputs_.size, conv.input.batch, side, padding);
  summed_ = images_.blocks;
  produced_ = outputs_.blocks;
  const int64_t summed_channels = summed_ * lanes_;
  const int64_t produced_channels = produced_ * lanes_;
  const int64_t tiles = grid_.count();
  keeps_filters_ = summed_channels * produced_channels * grid_.planes() <= kKeptFilterFloats ||
                   tiles > 2 * produced_channels;
  if (keeps_filters_) {
    // What a tile holds in the cache: its planes, for the channels summed and those produced.
    const int64_t fitting = kCacheFloats / (grid_.planes() * (summed_channels + produced_channels));
    const int64_t at_most = std::clamp(fitting / kRowGroup * kRowGroup, kRowGroup, 8 * kRowGroup);
    parts_ = std::min(parts, CeilDiv(tiles, at_most));
    // Blocks of nearly the same size and equally many for each part, so that no part waits for
    // another.
    block_tiles_ = CeilDiv(tiles, CeilDiv(CeilDiv(tiles, at_most), parts_) * parts_);
    summed_chunk_ = summed_;
    filter_plane_ = PlaneStride(summed_channels * produced_channels);
    image_plane_ = PlaneStride(block_tiles_ * summed_channels);
    product_plane_ = PlaneStride(block_tiles_ * produced_channels);
    return;
  }
  // With few tiles, all of their products stay in the cache while the filters stream by.
  parts_ = parts;
  summed_chunk_ = std::min(summed_, (tiles > 96 ? 256 : 128) / lanes_);
  const bool one_chunk = summed_chunk_ == summed_ && tiles > 96;
  block_tiles_ = one_chunk ? CeilDiv(tiles, CeilDiv(tiles, 64)) : tiles;
  filter_plane_ = PlaneStride(summed_chunk_ * lanes_ * 2 * lanes_);
  image_plane_ = PlaneStride(tiles * summed_channels);
  product_plane_ = PlaneStride(block_tiles_ * 2 * lanes_);
}

template <typename T>
int64_t WinogradCorrelation<T>::PanelOffset(int64_t panel, int64_t summed_blocks) const {
  return panel * summed_blocks * lanes_ * 2 * lanes_;
}

template <typename T>
int64_t WinogradCorrelation<T>::derived_bytes() const {
  return keeps_filters_ ? grid_.planes() * filter_plane_ * 4 : 0;
}

template <typename T>
int64_t WinogradCorrelation<T>::workspace_bytes() const {
  const int64_t planes = grid_.planes();
  if (keeps_filters_) return parts_ * planes * (image_plane_ + product_plane_) * 4;
  return planes * (image_plane_ + parts_ * (filter_plane_ + product_plane_)) * 4;
}

template <typename T>
void WinogradCorrelation<T>::TransformAllFilters(const T* filters, float* derived) const {
  ForEachPart(panels(), [&](int64_t panel) {
    transforms_.filters(grid_.side, filters_, filters, {0, summed_}, 2 * panel,
                        {derived + PanelOffset(panel, summed_), filter_plane_, PanelBlocks(panel)});
  });
}

template <typename T>
void WinogradCorrelation<T>::Run(const T* images, const T* filters, const float* derived,
                                 float* workspace, const PixelEpilogue& epilogue,
                                 T* outputs) const {
  if (keeps_filters_) {
    ForEachPart(parts_, [&](int64_t part) {
      RunTileBlocks(part, images, derived, workspace, epilogue, outputs);
    });
    return;
  }
  const int64_t tiles = grid_.count();
  const TilePlanes transformed{workspace, image_plane_, tiles * lanes_};
  // One item per block of channels. If there are fewer blocks than parts, their tiles are cut, too.
  const int64_t cuts = CeilDiv(parts_, summed_);
  ForEachPart(summed_ * cuts, [&](int64_t i) {
    const IndexRange range = Share(tiles, i % cuts, cuts);
    const TilePlanes target{transformed.data + range.begin * lanes_, transformed.plane_stride,
                            transformed.block_stride};
    transforms_.input_tiles(grid_, images_, range, i / cuts, images, target);
  });
  ForEachPart(parts_, [&](int64_t part) {
    RunPanels(part, filters, transformed.data, workspace + grid_.planes() * image_plane_, epilogue,
              outputs);
  });
}

template <typename T>
void WinogradCorrelation<T>::RunTileBlocks(int64_t part, const T* images, const float* derived,
                                           float* workspace, const PixelEpilogue& epilogue,
                                           T* outputs) const {
  const int64_t planes = grid_.planes();
  float* mine = workspace + part * planes * (image_plane_ + product_plane_);
  const TilePlanes tiles{mine, image_plane_, block_tiles_ * lanes_};
  const TilePlanes products{mine + planes * image_plane_, product_plane_, block_tiles_ * lanes_};
  const int64_t total = grid_.count();
  const IndexRange blocks = Share(CeilDiv(total, block_tiles_), part, parts_);
  for (int64_t block = blocks.begin; block < blocks.end; ++block) {
    const IndexRange range{block * block_tiles_, std::min(total, (block + 1) * block_tiles_)};
    for (int64_t c = 0; c < summed_; ++c)
      transforms_.input_tiles(grid_, images_, range, c, images, tiles);
    for (int64_t plane = 0; plane < planes; ++plane) {
      for (int64_t panel = 0; panel < panels(); ++panel) {
        MultiplyTiles(
            {.tiles = tiles.data + plane * image_plane_,
             .tiles_block_stride = tiles.block_stride,
             .blocks = summed_,
             .filters = derived + plane * filter_plane_ + PanelOffset(panel, summed_),
             .panel_blocks = PanelBlocks(panel),
             .products = products.data + plane * product_plane_ + 2 * panel * products.block_stride,
             .products_block_stride = products.block_stride},
            Size(range));
      }
    }
    for (int64_t o = 0; o < produced_; ++o)
      transforms_.output_tiles(grid_, outputs_, range, o, products, epilogue, outputs);
  }
}

template <typename T>
void WinogradCorrelation<T>::RunPanels(int64_t part, const T* filters, const float* tiles,
                                       float* workspace, const PixelEpilogue& epilogue,
                                       T* outputs) const {
  float* mine = workspace + part * grid_.planes() * (filter_plane_ + product_plane_);
  // If there are fewer panels than parts, the tiles of a panel are cut into ranges. Each then
  // transforms the panel's filters again.
  const int64_t cuts = CeilDiv(parts_, panels());
  const IndexRange items = Share(panels() * cuts, part, parts_);
  for (int64_t i = items.begin; i < items.end; ++i) {
    const IndexRange range = Share(grid_.count(), i % cuts, cuts);
    if (Size(range) > 0) RunPanel(i / cuts, range, filters, tiles, mine, epilogue, outputs);
  }
}

template <typename T>
void WinogradCorrelation<T>::RunPanel(int64_t panel, const IndexRange& tiles, const T* filters,
                                      const float* transformed, float* workspace,
                                      const PixelEpilogue& epilogue, T* outputs) const {
  const int64_t planes = grid_.planes();
  const int64_t blocks = PanelBlocks(panel);
  const FilterPanel chunk{workspace, filter_plane_, blocks};
  const int64_t product_stride = block_tiles_ * lanes_;
  float* products = workspace + planes * filter_plane_;
  for (int64_t begin = 0; begin < summed_; begin += summed_chunk_) {
    const int64_t end = std::min(summed_, begin + summed_chunk_);
    transforms_.filters(grid_.side, filters_, filters, {begin, end}, 2 * panel, chunk);
    for (int64_t first = tiles.begin; first < tiles.end; first += block_tiles_) {
      const IndexRange range{first, std::min(tiles.end, first + block_tiles_)};
      for (int64_t plane = 0; plane < planes; ++plane) {
        MultiplyTiles({.tiles = transformed + plane * image_plane_ +
                                (begin * grid_.count() + range.begin) * lanes_,
                       .tiles_block_stride = grid_.count() * lanes_,
                       .blocks = end - begin,
                       .filters = chunk.data + plane * filter_plane_,
                       .panel_blocks = blocks,
                       .products = products + plane * product_plane_,
                       .products_block_stride = product_stride,
                       .accumulate = begin > 0},
                      Size(range));
      }
      // The output transform needs the sum over all channels.
      if (end < summed_) continue;
      for (int64_t j = 0; j < blocks; ++j) {
        // Block 0 of the products is the first block of the panel; TransformOutputTiles counts
        // blocks from the first of all.
        const TilePlanes source{products - 2 * panel * product_stride, product_plane_,
                                product_stride};
        transforms_.output_tiles(grid_, outputs_, range, 2 * panel + j, source, epilogue, outputs);
      }
    }
  }
}

template <typename T>
WinogradFilterGradient<T>::WinogradFilterGradient(const Convolution& conv, int64_t side,
                                                  int64_t parts)
    : lanes_(WinogradLanes()),
      grid_(GridOf(conv.output.size, conv.input.batch, side, conv.window.pad_begin)),
      images_{CeilDiv(conv.input.channels, lanes_), conv.input.size},
      outputs_{CeilDiv(conv.output.channels, lanes_), conv.output.size},
      filters_{conv.output.channels, conv.input.channels, false} {
  const int64_t inputs = images_.blocks * lanes_;
  const int64_t outputs = outputs_.blocks * lanes_;
  const int64_t tiles = grid_.count();
  // The sums of a part are planes of inputs · outputs elements, the transformed tiles planes of
  // tiles · (inputs + outputs). Each part has sums of its own, so they must be much smaller than
  // the tiles.
  by_tile_blocks_ = inputs * outputs < tiles * (inputs + outputs) / 4;
  if (by_tile_blocks_) {
    const int64_t fitting = kCacheFloats * 3 / 2 / (grid_.planes() * (inputs + outputs));
    const int64_t at_most = std::clamp<int64_t>(fitting, 32, 256);
    parts_ = std::min(parts, CeilDiv(tiles, at_most));
    block_tiles_ = CeilDiv(tiles, CeilDiv(CeilDiv(tiles, at_most), parts_) * parts_);
    // Every part must have a block: its sums are added whether it had one or not.
    parts_ = std::min(parts_, CeilDiv(tiles, block_tiles_));
    input_group_ = images_.blocks;
    sum_plane_ = PlaneStride(inputs * outputs);
    image_plane_ = PlaneStride(block_tiles_ * inputs);
    gradient_plane_ = PlaneStride(block_tiles_ * outputs);
    return;
  }
  parts_ = parts;
  block_tiles_ = CeilDiv(tiles, CeilDiv(tiles, 256));
  input_group_ = std::min<int64_t>(images_.blocks, 64 / lanes_);
  sum_plane_ = PlaneStride(input_group_ * lanes_ * 2 * lanes_);
  // With an odd number of tiles, the blocks of channels don't map to one cache set.
  image_plane_ = PlaneStride((tiles | 1) * inputs);
  gradient_plane_ = PlaneStride((tiles | 1) * outputs);
}

template <typename T>
int64_t WinogradFilterGradient<T>::workspace_bytes() const {
  const int64_t planes = grid_.planes();
  if (by_tile_blocks_) return parts_ * planes * (image_plane_ + gradient_plane_ + sum_plane_) * 4;
  return planes * (image_plane_ + gradient_plane_ + parts_ * sum_plane_) * 4;
}

template <typename T>
void WinogradFilterGradient<T>::Run(const T* images, const T* output_gradients, float* workspace,
                                    T* filter_gradients) const {
  if (by_tile_blocks_) {
    RunTileBlocks(images, output_gradients, workspace, filter_gradients);
  } else {
    RunFilterBlocks(images, output_gradients, workspace, filter_gradients);
  }
}

// Each part sums over its tiles for all filters. The sums of the parts are added at the end, in
// order.
template <typename T>
void WinogradFilterGradient<T>::RunTileBlocks(const T* images, const T* output_gradients,
                                              float* workspace, T* filter_gradients) const {
  const int64_t planes = grid_.planes();
  ForEachPart(parts_,
              [&](int64_t part) { SumTileBlocks(part, images, output_gradients, workspace); });
  const float* sums = workspace + parts_ * planes * (image_plane_ + gradient_plane_);
  ForEachPart(images_.blocks * outputs_.blocks, [&](int64_t i) {
    const int64_t input = i % images_.blocks;
    const int64_t output = i / images_.blocks;
    const int64_t panel = output / 2;
    const int64_t row_stride = PanelBlocks(panel) * lanes_;
    const int64_t offset = panel * images_.blocks * lanes_ * 2 * lanes_ +
                           input * lanes_ * row_stride + output % 2 * lanes_;
    transforms_.filter_gradients(grid_.side, filters_, input, output, sums + offset, parts_,
                                 planes * sum_plane_, sum_plane_, row_stride, filter_gradients);
  });
}

template <typename T>
void WinogradFilterGradient<T>::SumTileBlocks(int64_t part, const T* images,
                                              const T* output_gradients, float* workspace) const {
  const int64_t planes = grid_.planes();
  float* mine = workspace + part * planes * (image_plane_ + gradient_plane_);
  const TilePlanes tiles{mine, image_plane_, block_tiles_ * lanes_};
  const TilePlanes gradients{mine + planes * image_plane_, gradient_plane_, block_tiles_ * lanes_};
  float* sums =
      workspace + parts_ * planes * (image_plane_ + gradient_plane_) + part * planes * sum_plane_;
  const int64_t total = grid_.count();
  const IndexRange blocks = Share(CeilDiv(total, block_tiles_), part, parts_);
  for (int64_t block = blocks.begin; block < blocks.end; ++block) {
    const IndexRange range{block * block_tiles_, std::min(total, (block + 1) * block_tiles_)};
    for (int64_t c = 0; c < images_.blocks; ++c)
      transforms_.input_tiles(grid_, images_, range, c, images, tiles);
    for (int64_t o = 0; o < outputs_.blocks; ++o)
      transforms_.gradient_tiles(grid_, outputs_, range, o, output_gradients, gradients);
    for (int64_t plane = 0; plane < planes; ++plane) {
      for (int64_t panel = 0; panel < panels(); ++panel) {
        MultiplyGradients(
            {.tiles = tiles.data + plane * image_plane_,
             .gradients =
                 gradients.data + plane * gradient_plane_ + 2 * panel * gradients.block_stride,
             .tiles_block_stride = tiles.block_stride,
             .gradients_block_stride = gradients.block_stride,
             .blocks = images_.blocks,
             .panel_blocks = PanelBlocks(panel),
             .products = sums + plane * sum_plane_ + panel * images_.blocks * lanes_ * 2 * lanes_,
             .accumulate = block > blocks.begin},
            Size(range));
      }
    }
  }
}

// All tiles are transformed once. Then each item sums over all of them for a few filters, and
// writes these filters' gradients, so nothing is added across parts.
template <typename T>
void WinogradFilterGradient<T>::RunFilterBlocks(const T* images, const T* output_gradients,
                                                float* workspace, T* filter_gradients) const {
  const int64_t planes = grid_.planes();
  const int64_t total = grid_.count();
  const TilePlanes tiles{workspace, image_plane_, (total | 1) * lanes_};
  const TilePlanes gradients{workspace + planes * image_plane_, gradient_plane_,
                             (total | 1) * lanes_};
  ForEachPart(images_.blocks + outputs_.blocks, [&](int64_t i) {
    if (i < images_.blocks) {
      transforms_.input_tiles(grid_, images_, {0, total}, i, images, tiles);
    } else {
      transforms_.gradient_tiles(grid_, outputs_, {0, total}, i - images_.blocks, output_gradients,
                                 gradients);
    }
  });
  float* sums = workspace + planes * (image_plane_ + gradient_plane_);
  const int64_t groups = CeilDiv(images_.blocks, input_group_);
  ForEachPart(parts_, [&](int64_t part) {
    const IndexRange items = Share(panels() * groups, part, parts_);
    for (int64_t i = items.begin; i < items.end; ++i) {
      const IndexRange inputs{i % groups * input_group_,
                              std::min(images_.blocks, (i % groups + 1) * input_group_)};
      RunFilterBlock(i / groups, inputs, tiles, gradients, sums + part * planes * sum_plane_,
                     filter_gradients);
    }
  });
}

template <typename T>
void WinogradFilterGradient<T>::RunFilterBlock(int64_t panel, const IndexRange& inputs,
                                               const TilePlanes& tiles, const TilePlanes& gradients,
                                               float* sums, T* filter_gradients) const {
  const int64_t total = grid_.count();
  const int64_t row_stride = PanelBlocks(panel) * lanes_;
  for (int64_t plane = 0; plane < grid_.planes(); ++plane) {
    for (int64_t first = 0; first < total; first += block_tiles_) {
      MultiplyGradients({.tiles = tiles.data + plane * image_plane_ +
                                  inputs.begin * tiles.block_stride + first * lanes_,
                         .gradients = gradients.data + plane * gradient_plane_ +
                                      2 * panel * gradients.block_stride + first * lanes_,
                         .tiles_block_stride = tiles.block_stride,
                         .gradients_block_stride = gradients.block_stride,
                         .blocks = Size(inputs),
                         .panel_blocks = PanelBlocks(panel),
                         .products = sums + plane * sum_plane_,
                         .accumulate = first > 0},
                        std::min(block_tiles_, total - first));
    }
  }
  for (int64_t input = inputs.begin; input < inputs.end; ++input) {
    for (int64_t j = 0; j < PanelBlocks(panel); ++j) {
      const float* from = sums + (input - inputs.begin) * lanes_ * row_stride + j * lanes_;
      transforms_.filter_gradients(grid_.side, filters_, input, 2 * panel + j, from, 1, 0,
                                   sum_plane_, row_stride, filter_gradients);
    }
  }
}

template class WinogradCorrelation<float>;
template class WinogradCorrelation<BFloat16>;
template class WinogradFilterGradient<float>;
template class WinogradFilterGradient<BFloat16>;

}  // namespace skiff
