// Convolutions on a device by cuDNN, which is loaded when it is first asked for one: programs run
// without it as well, on kernels of our own, after a warning.
//
// The same convolution has the same bits in each run: no algorithm adds up in an order that varies.
// Numbers are float32, whose factors are rounded to TF32 only in MathMode::kTf32; or half, whose
// products are added in float32 on tensor cores.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>

#include "framework/base/dtype.h"
#include "framework/op/math_mode.h"

struct CUstream_st;  // a cudaStream_t points to one

namespace skiff {

enum class CudnnPass { kForward, kBackwardData, kBackwardFilter };

// Of images or volumes with channels first. None of the numbers of dims is 0, and no tensor has
// more than 2^31 - 1 elements.
struct CudnnConvolutionSpec {
  CudnnPass pass = CudnnPass::kForward;
  DType dtype = DType::kFloat32;  // or half, of all tensors
  int axes = 2;                   // 3 for volumes
  // Batch, channels and extents; of the filter, output channels, channels of a group and extents.
  std::array<int32_t, 5> input{};
  std::array<int32_t, 5> filter{};
  std::array<int32_t, 5> output{};
  // Of the axes. The padding is the same before and after.
  std::array<int32_t, 3> padding{};
  std::array<int32_t, 3> stride{};
  std::array<int32_t, 3> dilation{};
  int32_t groups = 1;
  MathMode math = MathMode::kFull;

  friend auto operator<=>(const CudnnConvolutionSpec&, const CudnnConvolutionSpec&) = default;
};

class CudnnConvolution {
 public:
  // Returns whether the library is there and has a convolution of this kind for the current device.
  // The answer, which takes long, is kept. Throws Error (kIo) if the library can't work at all. If
  // it refuses the numbers, a warning says so, the first time.
  static bool Supports(const CudnnConvolutionSpec& spec);
  // Returns the convolution. Throws Error unless it is supported.
  static std::unique_ptr<CudnnConvolution> Make(const CudnnConvolutionSpec& spec);

  virtual ~CudnnConvolution() = default;
  // Of the workspace that Run needs, aligned as workspaces of kernels are.
  virtual int64_t workspace_bytes() const = 0;
  // Gives the convolution to the stream: from input and filter to output, from the output's
  // gradient and the filter to the input's gradient, or from the output's gradient and the input to
  // the filter's gradient. `adds`: to what the result holds.
  virtual void Run(CUstream_st* stream, const void* first, const void* second, void* result,
                   void* workspace, bool adds) const = 0;
};

}  // namespace skiff
