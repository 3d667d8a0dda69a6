// Convolutions as matrix products: the inputs that a filter sees at each output point become the
// columns of a matrix, some points at a time. For float32 and float64 convolutions that none of the
// oneDNN kernels covers.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "framework/op/kernel.h"
#include "operators/common/cpu/gemm.h"
#include "operators/nn/convolution/volume_convolution.h"

namespace skiff {

// One prepared pass. T is float or double. Values are summed in the order of Gemm<T>
// (operators/common/cpu/gemm.h), which for double depends only on the sizes.
template <typename T>
class ColumnConvolution {
 public:
  // Requests the memory of the columns from `context`.
  ColumnConvolution(const VolumeConvolution& convolution, ConvolutionPass pass,
                    PrepareContext& context);

  // For kForward: computes the output from input and filter.
  void Forward(const KernelContext& run, const T* input, const T* filter, T* output) const;
  // For kBackwardData: computes the gradient of the input, the transposed convolution of the
  // gradient of the output.
  void BackwardData(const KernelContext& run, const T* output_gradient, const T* filter,
                    T* input_gradient) const;
  // For kBackwardFilter: computes the gradient of the filter.
  void BackwardFilter(const KernelContext& run, const T* output_gradient, const T* input,
                      T* filter_gradient) const;

 private:
  // Points [begin, end) of an image's output.
  struct Chunk {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t size() const { return end - begin; }
  };

  GemmSpec ProductOf(ConvolutionPass pass, int64_t points, bool adds) const;
  template <typename Visit>
  void ForEachChunk(const Visit& visit) const;
  void FillColumns(const T* image, const Chunk& chunk, T* columns) const;
  void AddColumns(const T* columns, const Chunk& chunk, T* image) const;
  const Gemm<T>& GemmOf(const Chunk& chunk) const {
    return chunk.size() == points_ ? *full_ : *rest_;
  }

  VolumeConvolution conv_;
  VolumeStrides in_;
  VolumeStrides out_;
  int64_t points_ = 0;  // of a full chunk
  int columns_ = -1;
  // For the first chunk of all (kBackwardFilter), full ones, and the last of an image.
  std::optional<Gemm<T>> first_;
  std::optional<Gemm<T>> full_;
  std::optional<Gemm<T>> rest_;
};

extern template class ColumnConvolution<float>;
extern template class ColumnConvolution<double>;

}  // namespace skiff
