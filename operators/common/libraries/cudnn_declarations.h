// What Skiff uses of cuDNN's interface: the part that versions 8 and 9 share. The declarations are
// here, so that a build needs no headers of cuDNN. Only a run with the library shows whether they
// are right.
//
// Enumerations are passed as int. Handles and descriptors are pointers to structures of the
// library. Functions that return int return a status.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace skiff::cudnn {

inline constexpr int kSuccess = 0;             // CUDNN_STATUS_SUCCESS
inline constexpr int kFloat = 0;               // CUDNN_DATA_FLOAT
inline constexpr int kFloat16 = 2;             // CUDNN_DATA_HALF
inline constexpr int kBFloat16 = 9;            // CUDNN_DATA_BFLOAT16
inline constexpr int kChannelsFirst = 0;       // CUDNN_TENSOR_NCHW
inline constexpr int kCrossCorrelation = 1;    // CUDNN_CROSS_CORRELATION
inline constexpr int kDeterministic = 1;       // CUDNN_DETERMINISTIC
inline constexpr int kTensorCores = 1;         // CUDNN_TENSOR_OP_MATH
inline constexpr int kRoundToTensorCores = 2;  // CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION
inline constexpr int kFusedSums = 3;           // CUDNN_FMA_MATH
inline constexpr int kFftForward = 4;          // CUDNN_CONVOLUTION_FWD_ALGO_FFT
inline constexpr int kWinogradForward = 7;     // CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED
inline constexpr int kFftBackward = 2;         // CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, and of FILTER
inline constexpr int kWinogradBackward = 5;    // the same of BWD_DATA and BWD_FILTER

// cudnnConvolutionFwdAlgoPerf_t, and its likes for the other passes.
struct Algorithm {
  int algorithm;
  int status;
  float time;
  size_t memory;
  int determinism;
  int math;
  int reserved[3];
};
static_assert(offsetof(Algorithm, memory) == 16 && sizeof(Algorithm) == 48);

using Pointer = void*;

using CreateFunction = int(Pointer*);
using DestroyFunction = int(Pointer);
using SetStreamFunction = int(Pointer handle, cudaStream_t stream);
using ErrorStringFunction = const char*(int status);
using SetTensorFunction = int(Pointer, int type, int dims, const int* sizes, const int* strides);
using SetFilterFunction = int(Pointer, int type, int format, int dims, const int* sizes);
using SetConvolutionFunction = int(Pointer, int axes, const int* paddings, const int* strides,
                                   const int* dilations, int mode, int type);
using SetIntFunction = int(Pointer, int);

// The functions of the passes; `first`, `second` and `result` are descriptors of tensors or
// filters.
using ChooseFunction = int(Pointer handle, Pointer first, Pointer second, Pointer convolution,
                           Pointer result, int count, int* found, Algorithm* algorithms);
using WorkspaceFunction = int(Pointer handle, Pointer first, Pointer second, Pointer convolution,
                              Pointer result, int algorithm, size_t* bytes);
using RunFunction = int(Pointer handle, const void* alpha, Pointer first_descriptor,
                        const void* first, Pointer second_descriptor, const void* second,
                        Pointer convolution, int algorithm, void* workspace, size_t bytes,
                        const void* beta, Pointer result_descriptor, void* result);

}  // namespace skiff::cudnn
