// Convolutions as matrix products with the columns of column_convolution.cc, on a device.
//
// Parts of the batch are taken one after the other: some images, or some points of an image if all
// its columns are too many. The products of a part's images, or of its groups, are a batch. With
// channels last, columns are rows: [points, channels · taps], and the product is transposed instead
// of the images. A filter of one tap, whose images are their own columns, needs no copy.
//
// The gradient of the input collects, for each point, the point's numbers in the columns. The
// gradient of the filter is summed part by part, and within a part over the images in their order.
// With channels last, the images of a part are one matrix, too: a single product sums over all of
// the images, or over runs of images where the filter is too small to keep a device busy.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "framework/base/element_count.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_parts.cuh"
#include "operators/common/cuda/cuda_product.h"
#include "operators/nn/convolution/cuda_columns.cuh"
#include "operators/nn/convolution/cuda_convolution.h"

namespace skiff {

// Products of the groups of some images, or of the images' points if these are one matrix.
template <typename T>
class CudaGroupedProduct {
 public:
  // A number of products, and the elements from one's matrices to the next one's.
  struct Repeated {
    int64_t count = 1;
    int64_t a = 0;
    int64_t b = 0;
    int64_t c = 0;
  };

  // The larger number is the batch of one call; the other one, often 1, is a loop.
  CudaGroupedProduct(CudaProductShape shape, Repeated groups, Repeated images)
      : calls_(groups.count < images.count ? groups : images),
        product_(Batched(shape, groups.count < images.count ? images : groups)) {}

  int64_t workspace_bytes() const { return product_.workspace_bytes(); }
  bool is_by_cublas() const { return product_.is_by_cublas(); }
  void Run(CUstream_st* stream, const T* a, const T* b, T* c, void* workspace, T beta) const {
    for (int64_t i = 0; i < calls_.count; ++i) {
      product_.Run(stream, a + i * calls_.a, b + i * calls_.b, c + i * calls_.c, workspace, T(1),
                   beta);
    }
  }

 private:
  static CudaProductShape Batched(CudaProductShape shape, const Repeated& batch) {
    shape.batches = batch.count;
    shape.stride_a = batch.a;
    shape.stride_b = batch.b;
    shape.stride_c = batch.c;
    return shape;
  }

  Repeated calls_;
  CudaProduct<T> product_;
};

// A convolution whose images and filter have elements.
template <typename T>
class CudaColumnConvolution final : public CudaConvolutionPass<T> {
 public:
  // Returns whether the filter has one tap and takes the images as they are.
  static bool IsOwnColumns(const VolumeConvolution& conv) {
    const VolumeWindow& window = conv.window;
    return window.taps() == 1 && window.stride == VolumeExtents{1, 1, 1} &&
           window.pad_begin == VolumeExtents{} && conv.input.size == conv.output.size;
  }

  CudaColumnConvolution(const VolumeConvolution& conv, ConvolutionPass pass)
      : conv_(conv),
        pass_(pass),
        rows_(conv.input.channels * conv.window.taps()),
        is_own_columns_(IsOwnColumns(conv)),
        windows_(conv),
        in_(CudaVolumeOf(conv.input, conv.order)) {
    ChooseParts();
    full_.emplace(ProductOf(images_, points_));
    rest_images_ = conv.output.batch % images_;
    rest_points_ = conv.output.points() % points_;
    if (rest_images_ > 0) rest_.emplace(ProductOf(rest_images_, points_));
    if (rest_points_ > 0) rest_.emplace(ProductOf(images_, rest_points_));
    product_bytes_ = full_->workspace_bytes();
    if (rest_) product_bytes_ = std::max(product_bytes_, rest_->workspace_bytes());
    product_bytes_ = RoundUp(product_bytes_, kAlignment);
    if (!is_own_columns_) {
      column_bytes_ = RoundUp(images_ * rows_ * points_ * int64_t{sizeof(T)}, kAlignment);
    }
    if (pass_ == ConvolutionPass::kBackwardFilter) {
      const int64_t sums = std::max(SumsOf(images_), rest_images_ > 0 ? SumsOf(rest_images_) : 1);
      if (sums > 1) partial_bytes_ = sums * conv.filter_elements() * int64_t{sizeof(T)};
    }
  }

  // Whether cuBLAS computes the products.
  bool is_by_cublas() const { return full_->is_by_cublas(); }
  int64_t workspace_bytes() const override {
    return product_bytes_ + column_bytes_ + partial_bytes_;
  }

  void Run(const KernelContext& run, const T* first, const T* second, T* result, void* workspace,
           bool adds) const override {
    for (int64_t n = 0; n < conv_.output.batch; n += images_) {
      for (int64_t p = 0; p < conv_.output.points(); p += points_) {
        const Part part{n, std::min(images_, conv_.output.batch - n), p,
                        std::min(points_, conv_.output.points() - p)};
        RunPart(StreamOf(run), part, first, second, result, static_cast<std::byte*>(workspace),
                adds);
      }
    }
  }

 private:
  static constexpr int64_t kAlignment = 256;

  struct Part {
    int64_t n;
    int64_t images;
    int64_t p;
    int64_t points;
  };

  bool is_last() const { return conv_.order == ChannelOrder::kLast; }
  // The partial sums take as much memory as the columns at most.
  int64_t MostSums() const {
    return CudaColumnBytes() / int64_t{sizeof(T)} / conv_.filter_elements();
  }

  int64_t SumsOf(int64_t images) const {
    return is_last() ? CudaFilterSums(conv_, images, points_, MostSums()) : images;
  }

  void ChooseParts() {
    const int64_t points = conv_.output.points();
    images_ = conv_.output.batch;
    points_ = points;
    const int64_t elements = CudaColumnBytes() / int64_t{sizeof(T)};
    if (!is_own_columns_) {
      images_ = std::clamp<int64_t>(elements / (rows_ * points), 1, images_);
      images_ = std::min(images_, std::max<int64_t>(kMaxCudaElements / InputElements(), 1));
      if (images_ == 1) points_ = std::clamp<int64_t>(elements / rows_, 1, points);
    }
    if (pass_ == ConvolutionPass::kBackwardFilter && !is_last()) {
      images_ = std::clamp<int64_t>(MostSums(), 1, images_);
    }
  }

  CudaGroupedProduct<T> ProductOf(int64_t images, int64_t points) const {
    const int64_t rows = conv_.group_rows();
    const int64_t outputs = conv_.group_outputs();
    const int64_t all_points = conv_.output.points();
    const int64_t filter_step = outputs * rows;
    const int64_t image_step = conv_.output.channels * all_points;
    using Repeated = typename CudaGroupedProduct<T>::Repeated;
    Repeated groups;
    Repeated batch;
    CudaProductShape shape;
    // Of the columns: from image to image, and from group to group.
    const int64_t columns_step = rows_ * points;
    const int64_t group_columns = is_last() ? rows : rows * points;
    const int64_t group_image = is_last() ? outputs : outputs * all_points;
    const int64_t column_row = is_last() ? rows_ : points;
    const int64_t image_row = is_last() ? conv_.output.channels : all_points;
    switch (pass_) {
      case ConvolutionPass::kForward:
        if (is_last()) {
          // All images are one matrix, [images · points, channels].
          shape = {.transpose_b = true, .m = images * points, .n = outputs, .k = rows};
          shape.lda = column_row;
          shape.ldb = rows;
          groups = Repeated{conv_.groups, group_columns, filter_step, group_image};
        } else {
          shape = {.m = outputs, .n = points, .k = rows};
          shape.lda = rows;
          shape.ldb = column_row;
          groups = Repeated{conv_.groups, filter_step, group_columns, group_image};
          batch = Repeated{images, 0, columns_step, image_step};
        }
        shape.ldc = image_row;
        break;
      case ConvolutionPass::kBackwardData:
        if (is_last()) {
          shape = {.m = images * points, .n = rows, .k = outputs};
          shape.lda = image_row;
          shape.ldb = rows;
          groups = Repeated{conv_.groups, group_image, filter_step, group_columns};
        } else {
          shape = {.transpose_a = true, .m = rows, .n = points, .k = outputs};
          shape.lda = rows;
          shape.ldb = image_row;
          groups = Repeated{conv_.groups, filter_step, group_image, group_columns};
          batch = Repeated{images, 0, image_step, columns_step};
        }
        shape.ldc = column_row;
        break;
      case ConvolutionPass::kBackwardFilter: {
        const int64_t sums = SumsOf(images);
        const int64_t of_sum = images / sums;
        shape = {.transpose_a = is_last(), .transpose_b = !is_last()};
        shape.m = outputs;
        shape.n = rows;
        shape.k = of_sum * points;
        shape.lda = image_row;
        shape.ldb = column_row;
        shape.ldc = rows;
        groups = Repeated{conv_.groups, group_image, group_columns, filter_step};
        batch = Repeated{sums, of_sum * image_step, of_sum * columns_step, conv_.filter_elements()};
        break;
      }
    }
    shape.math = conv_.math;
    return CudaGroupedProduct<T>(shape, groups, batch);
  }

  void RunPart(cudaStream_t stream, const Part& part, const T* first, const T* second, T* result,
               std::byte* workspace, bool adds) const {
    const bool is_rest = part.images != images_ || part.points != points_;
    const CudaGroupedProduct<T>& product = is_rest ? *rest_ : *full_;
    T* columns = reinterpret_cast<T*>(workspace + product_bytes_);
    T* partial_sums = reinterpret_cast<T*>(workspace + product_bytes_ + column_bytes_);
    const int64_t input = part.n * InputElements();
    const int64_t output = part.n * conv_.output.channels * conv_.output.points() +
                           part.p * (is_last() ? conv_.output.channels : 1);
    const bool starts = part.n == 0 && part.p == 0;
    switch (pass_) {
      case ConvolutionPass::kForward: {
        const T* from = Columns(stream, part, first + input, columns);
        product.Run(stream, is_last() ? from : second, is_last() ? second : from, result + output,
                    workspace, adds ? T(1) : T(0));
        break;
      }
      case ConvolutionPass::kBackwardData: {
        T* to = is_own_columns_ ? result + input : columns;
        product.Run(stream, is_last() ? first + output : second,
                    is_last() ? second : first + output, to, workspace, T(0));
        if (!is_own_columns_) Collect(stream, part, columns, result + input);
        break;
      }
      case ConvolutionPass::kBackwardFilter: {
        const T* from = Columns(stream, part, second + input, columns);
        const int64_t sums = SumsOf(part.images);
        if (sums > 1) {
          product.Run(stream, first + output, from, partial_sums, workspace, T(0));
          AddPartsOnDevice(stream, "gradient of filters", partial_sums, sums,
                           conv_.filter_elements(), starts ? T(0) : T(1), result);
        } else {
          product.Run(stream, first + output, from, result, workspace, starts ? T(0) : T(1));
        }
        break;
      }
    }
  }

  int64_t InputElements() const { return conv_.input.channels * conv_.input.points(); }

  CudaColumns ColumnsOf(const Part& part) const { return CudaColumns(conv_, part.points, part.p); }

  // Returns the columns of `images`.
  const T* Columns(cudaStream_t stream, const Part& part, const T* images, T* columns) const {
    if (is_own_columns_) return images;
    const int64_t count = part.images * conv_.input.channels * part.points;
    const int blocks = CudaBlocksOfThreads(count);
    if (is_last()) {
      FillColumns<T, true><<<blocks, kCudaThreads, 0, stream>>>(
          windows_, in_, ColumnsOf(part), images, columns, static_cast<uint32_t>(count));
    } else {
      FillColumns<T, false><<<blocks, kCudaThreads, 0, stream>>>(
          windows_, in_, ColumnsOf(part), images, columns, static_cast<uint32_t>(count));
    }
    CheckLaunch("columns of a convolution");
    return columns;
  }

  void Collect(cudaStream_t stream, const Part& part, const T* columns, T* images) const {
    const int64_t count = part.images * InputElements();
    const int blocks = CudaBlocksOfThreads(count);
    const bool adds = part.p > 0;
    if (is_last()) {
      CollectColumns<T, true><<<blocks, kCudaThreads, 0, stream>>>(
          windows_, in_, ColumnsOf(part), columns, images, adds, static_cast<uint32_t>(count));
    } else {
      CollectColumns<T, false><<<blocks, kCudaThreads, 0, stream>>>(
          windows_, in_, ColumnsOf(part), columns, images, adds, static_cast<uint32_t>(count));
    }
    CheckLaunch("gradient of a convolution's input");
  }

  VolumeConvolution conv_;
  ConvolutionPass pass_;
  int64_t rows_;  // of the columns of all groups
  bool is_own_columns_;
  CudaWindows windows_;
  CudaVolume in_;
  // Of a part.
  int64_t images_ = 1;
  int64_t points_ = 1;
  int64_t rest_images_ = 0;
  int64_t rest_points_ = 0;
  int64_t product_bytes_ = 0;
  int64_t column_bytes_ = 0;
  int64_t partial_bytes_ = 0;
  // For most parts, and for the last one of the batch or of an image.
  std::optional<CudaGroupedProduct<T>> full_;
  std::optional<CudaGroupedProduct<T>> rest_;
};

}  // namespace skiff
