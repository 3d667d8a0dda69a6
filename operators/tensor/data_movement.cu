// The device's DataMover, and the kernels of all ops that only move elements: on a device they have
// the factories that they have on the CPU.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "framework/op/registry.h"
#include "operators/common/axis_extents.h"
#include "operators/common/cuda/cuda_memory_mover.h"
#include "operators/common/cuda/cuda_words.cuh"
#include "operators/common/fast_divisor.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_mover.h"
#include "operators/tensor/kernels/part_copy.h"

namespace skiff {
namespace {

template <typename Index>
struct BoxAxes {
  struct Axis {
    Divisor<Index> dim;
    int64_t source_stride;
    int64_t target_stride;
  };
  int count = 0;
  Axis axes[StridedCopy::kMaxAxes];

  // Adds the offsets of position `index` in the box of the first `used` axes.
  __device__ void AddOffsets(Index index, int used, int64_t* source, int64_t* target) const {
    for (int i = used - 1; i >= 0; --i) {
      const auto at = static_cast<int64_t>(axes[i].dim.TakeRemainder(&index));
      *source += at * axes[i].source_stride;
      *target += at * axes[i].target_stride;
    }
  }
};

// Strides are in words.
template <typename Word, typename Index>
__global__ void CopyBox(BoxAxes<Index> box, Index words, const Word* source, Word* target) {
  const Index stride = Index{gridDim.x} * blockDim.x;
  for (Index i = Index{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += stride) {
    int64_t from = 0;
    int64_t to = 0;
    box.AddOffsets(i, box.count, &from, &to);
    target[to] = source[from];
  }
}

constexpr int kTile = 32;
constexpr int kTileRows = kCudaThreads / kTile;

// The last two axes of the box: `along_source` is contiguous in the source, `along_target` in the
// target.
struct Transposition {
  int64_t along_source;
  int64_t target_stride;  // of along_source
  int64_t along_target;
  int64_t source_stride;  // of along_target
  int64_t tiles;          // all
  WideDivisor tiles_along_source;
  WideDivisor tiles_along_target;
};

// A block reads a tile along the source's rows and writes it along the target's. The tile's rows
// are one word longer than they need be, so that a column is in as many banks as a row.
template <typename Word>
__global__ void TransposeBox(BoxAxes<uint64_t> outer, Transposition inner, const Word* source,
                             Word* target) {
  __shared__ Word tile[kTile][kTile + 1];
  const int column = static_cast<int>(threadIdx.x) % kTile;
  const int first_row = static_cast<int>(threadIdx.x) / kTile;
  for (int64_t unit = blockIdx.x; unit < inner.tiles; unit += gridDim.x) {
    auto rest = static_cast<uint64_t>(unit);
    const int64_t s = static_cast<int64_t>(inner.tiles_along_source.TakeRemainder(&rest)) * kTile;
    const int64_t t = static_cast<int64_t>(inner.tiles_along_target.TakeRemainder(&rest)) * kTile;
    int64_t from = 0;
    int64_t to = 0;
    outer.AddOffsets(rest, outer.count, &from, &to);
    for (int row = first_row; row < kTile; row += kTileRows) {
      if (t + row < inner.along_target && s + column < inner.along_source) {
        tile[row][column] = source[from + (t + row) * inner.source_stride + s + column];
      }
    }
    __syncthreads();
    for (int row = first_row; row < kTile; row += kTileRows) {
      if (s + row < inner.along_source && t + column < inner.along_target) {
        target[to + (s + row) * inner.target_stride + t + column] = tile[column][row];
      }
    }
    __syncthreads();  // until all have read the tile
  }
}

// Parts of a tensor, as rows of words.
struct WordParts {
  struct Part {
    void* data;
    uint32_t words;  // all
    FastDivisor row_words;
    int64_t first;  // in a row of the tensor
  };
  static constexpr int kCapacity = 64;

  int64_t whole_row_words;
  Part parts[kCapacity];
};

// Part y of the grid is copied by its blocks x.
template <typename Word, bool kJoins>
__global__ void CopyParts(WordParts all, Word* whole) {
  const WordParts::Part& part = all.parts[blockIdx.y];
  auto* data = static_cast<Word*>(part.data);
  const uint32_t stride = gridDim.x * blockDim.x;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < part.words; i += stride) {
    uint32_t row = i;
    const uint32_t column = part.row_words.TakeRemainder(&row);
    const int64_t at = row * all.whole_row_words + part.first + column;
    if constexpr (kJoins) {
      whole[at] = data[i];
    } else {
      data[i] = whole[at];
    }
  }
}

class CudaMover final : public DataMover {
 public:
  void Copy(const KernelContext& run, const StridedCopy& box, const void* source,
            void* target) const override {
    switch (box.loop()) {
      case StridedCopy::Loop::kNothing:
        return;
      case StridedCopy::Loop::kRows:
        if (box.axes().size() == 1) {
          return MemoryMoverOf(run).CopyBytes(run, source, target,
                                              box.element_count() * box.element_bytes());
        }
        return CopyWords(run, box, WordBytesOfRows(box, source, target), source, target);
      case StridedCopy::Loop::kTransposed:
        if (IsWorthTiles(box)) return Transpose(run, box, source, target);
        break;
      case StridedCopy::Loop::kElements:
        break;
    }
    CopyWords(run, box, box.element_bytes(), source, target);
  }

  void Join(const KernelContext& run, const AxisParts& parts, void* whole) const override {
    MoveParts<true>(run, parts, whole);
  }
  void Split(const KernelContext& run, const AxisParts& parts, const void* whole) const override {
    // It is only read.
    MoveParts<false>(run, parts, const_cast<void*>(whole));
  }

 private:
  // The rows of a box on whose both sides they are contiguous may be copied in larger words.
  static int64_t WordBytesOfRows(const StridedCopy& box, const void* source, const void* target) {
    const int64_t bytes = box.element_bytes();
    int64_t strides = box.axes().back().dim * bytes;
    for (const StridedCopy::Axis& axis : box.axes().first(box.axes().size() - 1)) {
      strides |= axis.source_stride * bytes | axis.target_stride * bytes;
    }
    return WordBytes({strides, AddressOf(source), AddressOf(target)});
  }

  // Narrower boxes would leave most of a tile empty. Their lines stay in the cache anyway.
  static bool IsWorthTiles(const StridedCopy& box) {
    constexpr int64_t kLeast = 12;
    const auto inner = box.axes().last(2);
    return inner[0].dim >= kLeast && inner[1].dim >= kLeast;
  }

  // Copies a box in words of another size than its elements, if these are contiguous along its last
  // axis. Then all strides are multiples of a word.
  template <typename Index>
  static BoxAxes<Index> AxesInWords(std::span<const StridedCopy::Axis> axes, int64_t element_bytes,
                                    int64_t word_bytes) {
    BoxAxes<Index> result;
    for (const StridedCopy::Axis& axis : axes) {
      auto& to = result.axes[result.count++];
      const bool is_row = word_bytes != element_bytes && &axis == &axes.back();
      to.dim = Divisor<Index>(is_row ? axis.dim * element_bytes / word_bytes : axis.dim);
      to.source_stride = is_row ? 1 : axis.source_stride * element_bytes / word_bytes;
      to.target_stride = is_row ? 1 : axis.target_stride * element_bytes / word_bytes;
    }
    return result;
  }

  static void CopyWords(const KernelContext& run, const StridedCopy& box, int64_t word_bytes,
                        const void* source, void* target) {
    const int64_t words = box.element_count() * box.element_bytes() / word_bytes;
    VisitIndexType(words, [&]<typename Index>() {
      const auto axes = AxesInWords<Index>(box.axes(), box.element_bytes(), word_bytes);
      VisitWord(word_bytes, [&]<typename Word>() {
        CopyBox<Word, Index><<<CudaBlocksOfThreads(words), kCudaThreads, 0, StreamOf(run)>>>(
            axes, static_cast<Index>(words), static_cast<const Word*>(source),
            static_cast<Word*>(target));
      });
    });
    CheckLaunch("copy of a box");
  }

  static void Transpose(const KernelContext& run, const StridedCopy& box, const void* source,
                        void* target) {
    const auto axes = box.axes();
    const StridedCopy::Axis& along_source = axes[axes.size() - 2];
    const StridedCopy::Axis& along_target = axes.back();
    const int64_t source_tiles = (along_source.dim + kTile - 1) / kTile;
    const int64_t target_tiles = (along_target.dim + kTile - 1) / kTile;
    const int64_t outer = box.element_count() / (along_source.dim * along_target.dim);
    const Transposition inner{.along_source = along_source.dim,
                              .target_stride = along_source.target_stride,
                              .along_target = along_target.dim,
                              .source_stride = along_target.source_stride,
                              .tiles = outer * source_tiles * target_tiles,
                              .tiles_along_source = WideDivisor(source_tiles),
                              .tiles_along_target = WideDivisor(target_tiles)};
    const auto outer_axes = AxesInWords<uint64_t>(axes.first(axes.size() - 2), 1, 1);
    VisitWord(box.element_bytes(), [&]<typename Word>() {
      TransposeBox<Word><<<CudaBlocks(inner.tiles), kCudaThreads, 0, StreamOf(run)>>>(
          outer_axes, inner, static_cast<const Word*>(source), static_cast<Word*>(target));
    });
    CheckLaunch("transposition");
  }

  template <bool kJoins>
  void MoveParts(const KernelContext& run, const AxisParts& parts, void* whole) const {
    const AxisExtents extents = ExtentsOfAxis(parts.whole, parts.axis);
    const int64_t index_bytes = extents.inner * SizeOf(parts.dtype);  // of an index of the axis
    for (size_t first = 0; first < parts.parts.size(); first += WordParts::kCapacity) {
      const auto batch = parts.parts.subspan(
          first, std::min<size_t>(WordParts::kCapacity, parts.parts.size() - first));
      if (!FitsWordParts(batch, extents.outer * index_bytes)) {
        for (const AxisPart& part : batch) MovePart<kJoins>(run, parts, part, whole);
        continue;
      }
      int64_t multiple = extents.length * index_bytes | AddressOf(whole);
      for (const AxisPart& part : batch) {
        // The address of a part without elements doesn't matter.
        if (part.extent == 0) continue;
        multiple |= part.offset * index_bytes | part.extent * index_bytes | AddressOf(part.data);
      }
      const int64_t word_bytes = WordBytes({multiple});
      WordParts table;
      table.whole_row_words = extents.length * index_bytes / word_bytes;
      int64_t most = 0;
      int count = 0;
      for (const AxisPart& part : batch) {
        const int64_t row_words = part.extent * index_bytes / word_bytes;
        const int64_t words = extents.outer * row_words;
        if (words == 0) continue;
        table.parts[count++] = {.data = part.data,
                                .words = static_cast<uint32_t>(words),
                                .row_words = FastDivisor(row_words),
                                .first = part.offset * index_bytes / word_bytes};
        most = std::max(most, words);
      }
      if (count == 0) continue;
      const dim3 grid(static_cast<unsigned>(CudaBlocksOfThreads(most)),
                      static_cast<unsigned>(count));
      VisitWord(word_bytes, [&]<typename Word>() {
        CopyParts<Word, kJoins>
            <<<grid, kCudaThreads, 0, StreamOf(run)>>>(table, static_cast<Word*>(whole));
      });
      CheckLaunch("parts of a tensor");
    }
  }

  // Returns whether 32 bits count the words of each part, and the steps of a grid beyond them.
  static bool FitsWordParts(std::span<const AxisPart> parts, int64_t bytes_of_index) {
    constexpr int64_t kStep = kMaxCudaBlocks * kCudaThreads;
    return std::ranges::all_of(parts, [&](const AxisPart& part) {
      return part.extent * bytes_of_index <= std::numeric_limits<int32_t>::max() - kStep;
    });
  }

  template <bool kJoins>
  void MovePart(const KernelContext& run, const AxisParts& parts, const AxisPart& part,
                void* whole) const {
    const PartCopy copy(parts.whole, parts.axis, part.offset, part.extent, parts.dtype, kJoins);
    char* const in_whole = static_cast<char*>(whole) + copy.offset_bytes();
    if constexpr (kJoins) {
      Copy(run, copy.box(), part.data, in_whole);
    } else {
      Copy(run, copy.box(), in_whole, part.data);
    }
  }
};

}  // namespace

void RegisterDataMovementCuda(OpRegistry& registry) {
  static const CudaMover mover;
  SetDeviceMover(&mover);
  AddMovingKernels(registry, {"coalesce_tensor",
                              "concat",
                              "concat_grad",
                              "diag",
                              "expand",
                              "expand_as_v2",
                              "expand_v2",
                              "flatten2",
                              "flatten2_grad",
                              "flatten_contiguous_range",
                              "flatten_contiguous_range_grad",
                              "flip",
                              "merge_lod_tensor",
                              "meshgrid",
                              "pad_grad",
                              "pixel_shuffle",
                              "pixel_shuffle_grad",
                              "read_from_array",
                              "reshape2",
                              "reshape2_grad",
                              "rnn_memory_helper",
                              "rnn_memory_helper_grad",
                              "roll",
                              "roll_grad",
                              "select_input",
                              "select_output",
                              "slice",
                              "slice_grad",
                              "split",
                              "squeeze2",
                              "squeeze2_grad",
                              "stack",
                              "stack_grad",
                              "strided_slice",
                              "strided_slice_grad",
                              "tile",
                              "transpose2",
                              "transpose2_grad",
                              "unsqueeze2",
                              "unsqueeze2_grad",
                              "unstack",
                              "unstack_grad",
                              "write_to_array"});
}

}  // namespace skiff
