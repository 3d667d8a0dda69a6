// The columns of a convolution (im2col) are the matrix [channels · taps, points] of the inputs that
// each tap of the filter sees at each output point, with 0 outside the input. With it
//
//   forward:          output = filter · columns
//   gradient of x:    columns = filterᵀ · output gradient, added up into the input (col2im)
//   gradient of w:    filter gradient += output gradient · columnsᵀ, over images and chunks
//
// for each group. The whole matrix would be `taps` times as large as the input. So images are taken
// one after the other and their points in chunks, and the workspace holds one chunk. Threads share
// the rows of a chunk's columns, and the product inside Gemm.
#include "operators/nn/convolution/column_convolution.h"

#include <algorithm>

#include "framework/base/element_count.h"
#include "framework/base/parallel.h"
#include "operators/nn/convolution/window_taps.h"

namespace skiff {
namespace {

// The most elements in the columns of a chunk: some MiB, so that the product reads them from the
// last-level cache.
constexpr int64_t kColumnElements = 1 << 20;
// With many rows, a chunk still has enough points for an efficient product.
constexpr int64_t kMinPoints = 64;

}  // namespace

template <typename T>
ColumnConvolution<T>::ColumnConvolution(const VolumeConvolution& convolution, ConvolutionPass pass,
                                        PrepareContext& context)
    : conv_(convolution),
      in_(StridesOf(convolution.input, convolution.order)),
      out_(StridesOf(convolution.output, convolution.order)) {
  const int64_t rows = conv_.input.channels * conv_.window.taps();
  const int64_t points = conv_.output.points();
  const int64_t wanted = std::max(kMinPoints, kColumnElements / std::max<int64_t>(rows, 1));
  points_ = std::min(points, wanted);
  // Nothing to multiply: the passes then only write zeros.
  if (points_ == 0 || rows == 0 || conv_.output.channels == 0 || conv_.output.batch == 0) {
    points_ = 0;
    return;
  }
  columns_ = context.RequestWorkspace(ByteCount(MultiplyCounts(rows, points_), kDTypeOf<T>));
  // The first product of all overwrites the filter's gradient, and the others add to it. So no pass
  // clears it.
  const bool is_sum = pass == ConvolutionPass::kBackwardFilter;
  if (is_sum) first_.emplace(ProductOf(pass, points_, /*adds=*/false), context);
  full_.emplace(ProductOf(pass, points_, is_sum), context);
  const int64_t rest = points % points_;
  if (rest > 0) rest_.emplace(ProductOf(pass, rest, is_sum), context);
}

template <typename T>
GemmSpec ColumnConvolution<T>::ProductOf(ConvolutionPass pass, int64_t points, bool adds) const {
  // A chunk is part of an image, so an image's matrix has the row length of the whole image: all
  // points with channels first, all channels with channels last. With channels last, an image is
  // [points, channels], and the product is transposed instead of the image.
  const bool is_first = conv_.order == ChannelOrder::kFirst;
  const int64_t rows = conv_.group_rows();
  const int64_t outputs = conv_.group_outputs();
  const int64_t all_points = conv_.output.points();
  const int64_t image_row = is_first ? all_points : conv_.output.channels;
  // The distances between neighbouring groups in filter, columns and image.
  const int64_t filter_step = outputs * rows;
  const int64_t column_step = rows * points;
  const int64_t image_step = is_first ? outputs * all_points : outputs;
  GemmSpec spec;
  spec.beta = adds ? 1 : 0;
  switch (pass) {
    case ConvolutionPass::kForward:
      if (is_first) {
        spec = {.m = outputs, .n = points, .k = rows, .ldc = image_row};
        spec.batch = {{conv_.groups, filter_step, column_step, image_step}};
      } else {
        spec = {.m = points, .n = outputs, .k = rows, .trans_a = true, .trans_b = true};
        spec.ldc = image_row;
        spec.batch = {{conv_.groups, column_step, filter_step, image_step}};
      }
      break;
    case ConvolutionPass::kBackwardData:
      spec = {.m = rows, .n = points, .k = outputs, .trans_a = true, .trans_b = !is_first};
      spec.ldb = image_row;
      spec.batch = {{conv_.groups, filter_step, image_step, column_step}};
      break;
    case ConvolutionPass::kBackwardFilter:
      spec.m = outputs;
      spec.n = rows;
      spec.k = points;
      spec.trans_a = !is_first;
      spec.trans_b = true;
      spec.lda = image_row;
      spec.batch = {{conv_.groups, image_step, column_step, filter_step}};
      break;
  }
  return spec;
}

template <typename T>
template <typename Visit>
void ColumnConvolution<T>::ForEachChunk(const Visit& visit) const {
  if (points_ == 0) return;
  for (int64_t begin = 0; begin < conv_.output.points(); begin += points_) {
    visit(Chunk{begin, std::min(begin + points_, conv_.output.points())});
  }
}

template <typename T>
void ColumnConvolution<T>::FillColumns(const T* image, const Chunk& chunk, T* columns) const {
  const int64_t taps = conv_.window.taps();
  ParallelFor(conv_.input.channels * taps, GrainOf(chunk.size()), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* channel = image + row / taps * in_.channel;
      T* line = columns + row * chunk.size();
      // The points that the tap sees outside the input keep the 0.
      std::fill_n(line, chunk.size(), T{0});
      VisitTap(conv_, in_, row % taps, chunk.begin, chunk.end,
               [=](int64_t to, int64_t from, int64_t count, int64_t step) {
                 for (int64_t i = 0; i < count; ++i) line[to + i] = channel[from + i * step];
               });
    }
  });
}

template <typename T>
void ColumnConvolution<T>::AddColumns(const T* columns, const Chunk& chunk, T* image) const {
  const int64_t taps = conv_.window.taps();
  // A channel is the work of one thread, since its taps add to the same points.
  ParallelFor(conv_.input.channels, GrainOf(chunk.size() * taps), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin * taps; row < end * taps; ++row) {
      T* channel = image + row / taps * in_.channel;
      const T* line = columns + row * chunk.size();
      VisitTap(conv_, in_, row % taps, chunk.begin, chunk.end,
               [=](int64_t from, int64_t to, int64_t count, int64_t step) {
                 for (int64_t i = 0; i < count; ++i) channel[to + i * step] += line[from + i];
               });
    }
  });
}

template <typename T>
void ColumnConvolution<T>::Forward(const KernelContext& run, const T* input, const T* filter,
                                   T* output) const {
  if (points_ == 0) {
    std::fill_n(output, conv_.output.count(), T{0});
    return;
  }
  const bool is_first = conv_.order == ChannelOrder::kFirst;
  T* columns = static_cast<T*>(run.workspace(columns_));
  for (int64_t n = 0; n < conv_.output.batch; ++n) {
    ForEachChunk([&](const Chunk& chunk) {
      FillColumns(input + n * in_.batch, chunk, columns);
      T* to = output + n * out_.batch + chunk.begin * out_.size[2];
      GemmOf(chunk).Run(run, is_first ? filter : columns, is_first ? columns : filter, to);
    });
  }
}

template <typename T>
void ColumnConvolution<T>::BackwardData(const KernelContext& run, const T* output_gradient,
                                        const T* filter, T* input_gradient) const {
  const int64_t image = conv_.input.channels * conv_.input.points();
  ParallelFor(conv_.input.batch, GrainOf(image), [=](int64_t begin, int64_t end) {
    std::fill(input_gradient + begin * image, input_gradient + end * image, T{0});
  });
  if (points_ == 0) return;
  T* columns = static_cast<T*>(run.workspace(columns_));
  for (int64_t n = 0; n < conv_.output.batch; ++n) {
    ForEachChunk([&](const Chunk& chunk) {
      const T* from = output_gradient + n * out_.batch + chunk.begin * out_.size[2];
      GemmOf(chunk).Run(run, filter, from, columns);
      AddColumns(columns, chunk, input_gradient + n * in_.batch);
    });
  }
}

template <typename T>
void ColumnConvolution<T>::BackwardFilter(const KernelContext& run, const T* output_gradient,
                                          const T* input, T* filter_gradient) const {
  if (points_ == 0) {
    std::fill_n(filter_gradient, conv_.filter_elements(), T{0});
    return;
  }
  T* columns = static_cast<T*>(run.workspace(columns_));
  for (int64_t n = 0; n < conv_.output.batch; ++n) {
    ForEachChunk([&](const Chunk& chunk) {
      FillColumns(input + n * in_.batch, chunk, columns);
      const T* from = output_gradient + n * out_.batch + chunk.begin * out_.size[2];
      const bool starts = n == 0 && chunk.begin == 0;
      (starts ? *first_ : GemmOf(chunk)).Run(run, from, columns, filter_gradient);
    });
  }
}

template class ColumnConvolution<float>;
template class ColumnConvolution<double>;

}  // namespace skiff
