// Convolutions of any window, stride and dilation as matrix products on images that are blocked by
// as many channels as a vector has lanes: [batch][block][row][column][lane].
//
// What a tile of pixels sees through each tap of the filter is gathered, a few pixels at a time, as
// *columns*: element (tap, block, pixel, lane). They stay in the second-level cache while all
// filters stream by. No sum depends on the number of parts, so neither do results.
#pragma once

#include <cstdint>
#include <vector>

#include "operators/nn/convolution_shared.h"
#include "operators/nn/filter_taps_shared.h"
#include "operators/nn/pixel_epilogue_shared.h"
#include "operators/nn/work_parts_shared.h"

namespace skiff {

// Taps of the largest filter that the passes take.
inline constexpr int64_t kMaxGemmTaps = 49;

// One tap of a filter: a pixel sees what lies at its own place times a step plus the offset.
struct GemmTap {
  int64_t index = 0;  // in the filter
  Extents offset{};
};

// The pixels of a batch that see the same taps: origin + (row, column) · step.
struct GemmPhase {
  Extents origin{};
  Extents count{};
  std::vector<GemmTap> taps;
  int64_t packed_offset = 0;  // of its filters, in floats
};

// Images of `blocks` blocks of channels.
struct GemmImages {
  int64_t blocks = 0;
  Extents size{};

  int64_t pixels() const { return size[0] * size[1]; }
  // The position of a pixel's vector.
  int64_t Position(int64_t image, int64_t block, int64_t pixel) const {
    return (image * blocks + block) * pixels() + pixel;
  }
};

// Images correlated with filters: the convolution itself, or the gradient of its input. There, with
// a stride of s, the pixels of each residue modulo s see taps of their own: s² phases.
class GemmCorrelation {
 public:
  // With `has_epilogue`, Run applies one.
  GemmCorrelation(const Convolution& conv, bool gradient_of_input, bool has_epilogue,
                  int64_t parts);

  int64_t packed_bytes() const { return packed_floats_ * 4; }
  int64_t workspace_bytes() const { return parts_ * (column_floats_ + product_floats_) * 4; }

  // Brings plain filters into the order of the products.
  void PackFilters(const float* filters, float* packed) const;
  void Run(const float* images, const float* packed, const PixelEpilogue& epilogue,
           float* workspace, float* outputs) const;

 private:
  int64_t panels() const { return CeilDiv(produced_.blocks, 2); }
  int64_t PanelBlocks(int64_t panel) const { return 2 * panel + 2 <= produced_.blocks ? 2 : 1; }
  // Blocks of summed channels, of all taps.
  int64_t SummedBlocks(const GemmPhase& phase) const {
    return static_cast<int64_t>(phase.taps.size()) * source_.blocks;
  }
  int64_t PanelOffset(const GemmPhase& phase, int64_t panel) const {
    return phase.packed_offset + panel * SummedBlocks(phase) * lanes_ * 2 * lanes_;
  }
  void AddPhase(const Convolution& conv, const Extents& origin);

  void RunPhase(const GemmPhase& phase, const float* images, const float* packed,
                const PixelEpilogue& epilogue, float* workspace, float* outputs) const;
  void RunTiles(const GemmPhase& phase, const IndexRange& tiles, const IndexRange& panels,
                const float* images, const float* packed, const PixelEpilogue& epilogue,
                float* workspace, float* outputs) const;
  // Writes the products of a panel's tiles to where they belong.
  void Write(const GemmPhase& phase, const IndexRange& tiles, int64_t panel, const float* products,
             const PixelEpilogue& epilogue, float* outputs) const;

  int64_t lanes_;
  FilterTaps filters_;
  bool gradient_of_input_;
  int64_t batch_;
  GemmImages source_;
  GemmImages produced_;
  Extents step_;         // between the pixels of a phase
  Extents source_step_;  // between what they see
  std::vector<GemmPhase> phases_;
  bool reads_directly_;   // images are the columns
  bool writes_directly_;  // products are the output
  int64_t parts_;
  int64_t chunk_blocks_;  // summed blocks whose columns are gathered at a time
  int64_t chunk_tiles_;   // pixels
  int64_t packed_floats_ = 0;
  int64_t column_floats_;
  int64_t product_floats_;
};

// The gradient of the filters.
class GemmFilterGradient {
 public:
  GemmFilterGradient(const Convolution& conv, int64_t parts);

  int64_t workspace_bytes() const { return (sum_floats_ + parts_ * column_floats_) * 4; }
  void Run(const float* images, const float* output_gradients, float* workspace,
           float* filter_gradients) const;

 private:
  int64_t panels() const { return CeilDiv(outputs_.blocks, 2); }
  int64_t PanelBlocks(int64_t panel) const { return 2 * panel + 2 <= outputs_.blocks ? 2 : 1; }
  int64_t SummedBlocks() const { return static_cast<int64_t>(phase_.taps.size()) * images_.blocks; }
  // Sums over all pixels for some blocks of (tap, input channel) and some panels.
  void Sum(const IndexRange& blocks, const IndexRange& panels, const float* images,
           const float* output_gradients, float* columns, float* sums) const;
  void Store(int64_t input_block, int64_t output_block, const float* sums,
             float* filter_gradients) const;

  int64_t lanes_;
  FilterTaps filters_;
  int64_t batch_;
  GemmImages images_;
  GemmImages outputs_;
  Extents stride_;
  GemmPhase phase_;      // all output pixels
  bool reads_directly_;  // images are the columns
  int64_t parts_;
  int64_t block_parts_;  // in which the blocks are cut; the panels are cut in parts_ / block_parts_
  int64_t chunk_blocks_;
  int64_t chunk_tiles_;
  int64_t sum_floats_;
  int64_t column_floats_;
};

}  // namespace skiff
