// A stand-in for cuDNN's convolutions, as version 9 has them: float32 or half, channels first, two
// or three axes, groups. Enumerations are passed as int; handles and descriptors are numbers, none
// of which is given twice.
//
// It refuses what cuDNN's documentation doesn't allow: handles and descriptors that are null,
// destroyed, never set or of another kind; sizes or types that don't fit each other; algorithms
// that it didn't offer for these sizes; numbers at odd addresses; a workspace that is smaller than
// it said. It also refuses what cuDNN takes and Skiff mustn't ask for: a math type other than
// CUDNN_TENSOR_OP_MATH or, for float32, CUDNN_FMA_MATH; a run before cudnnSetStream; a workspace
// that isn't at a multiple of 256 bytes; a run of an algorithm that isn't deterministic, rounds
// factors or takes more than 512 MiB, uses tensor cores for float32 though the math type is
// CUDNN_FMA_MATH, or transforms half (FFT, Winograd's). All of these are CUDNN_STATUS_BAD_PARAM,
// but for algorithms that weren't offered. CUDNN_STATUS_NOT_SUPPORTED are those, and what cuDNN has
// and the stand-in hasn't: sums in half, other types, layouts, strides of tensors and numbers of
// axes, and CUDNN_CONVOLUTION.
//
// The algorithms that it offers depend on the sizes and the type alone, so that convolutions of
// several sizes meet all answers. Of float32:
//  - First come those that Skiff mustn't run, or shouldn't: one that isn't deterministic, one on
//    tensor cores, and one whose status is NOT_SUPPORTED, or whose workspace takes 1 GiB, or 12
//    times as much as the tensors and 8 MiB.
//  - Then, in an order that differs, one without a workspace and one with 776 bytes.
//  - Last, for images and filters of 3x3 without strides, dilations and groups, Winograd's with 520
//    bytes, which uses tensor cores for some sizes.
// For one size in five, the last two lines are one algorithm with a workspace of 6 times as much as
// the tensors and 4 MiB. For one in eleven, they are missing.
//
// Of half: one that isn't deterministic, an FFT, Winograd's, and then a product, on tensor cores,
// with 776 bytes for two sizes of three; for one in eleven, it would round factors.
//
// For another size in eleven, cudnnGetConvolution…Algorithm_v7 returns NOT_SUPPORTED.
//
// A run is one kernel in the handle's stream, which writes all of the workspace and adds in a fixed
// order, in float64. On tensor cores, factors of float32 are rounded to TF32. It reads the result
// only if beta isn't 0.
#pragma once

#include <string_view>

namespace skiff::cuda_emulation {

// Returns the stand-in's function of this name, nullptr if it has none.
void* CudnnFunction(std::string_view name);

}  // namespace skiff::cuda_emulation
