// A stand-in for cuDNN's convolutions, as version 9 has them: float32 or half, channels first, two
// or three axes, groups. Enumerations are passed as int; handles and descriptors are numbers, none
// of which is given twice.
//
// It refuses calls that cuDNN's documentation doesn't allow: handles and descriptors that are null,
// destroyed, never set or of another kind; handles and streams of another device than the current
// one; sizes or types that don't fit each other; algorithms not
// offered for these sizes; numbers at odd addresses; a workspace that is smaller than stated. It
// also refuses calls that cuDNN takes and Skiff mustn't make: a math type other than
// CUDNN_TENSOR_OP_MATH or, for float32, CUDNN_FMA_MATH; a run before cudnnSetStream; a workspace
// that isn't at a multiple of 256 bytes; a run of an algorithm that isn't deterministic, rounds
// factors or takes more than 512 MiB, uses tensor cores for float32 though the math type is
// CUDNN_FMA_MATH, or transforms half (FFT, Winograd's). All of these are CUDNN_STATUS_BAD_PARAM,
// except algorithms that weren't offered. CUDNN_STATUS_NOT_SUPPORTED are these algorithms, and
// features of cuDNN that the stand-in lacks: sums in half, other types, layouts, strides of tensors
// and numbers of axes, and CUDNN_CONVOLUTION.
//
// The algorithms that it offers depend on the sizes and the type alone, so that convolutions of
// several sizes meet all answers. Of float32:
//  - First come algorithms that Skiff mustn't run, or shouldn't: a nondeterministic algorithm, an
//    algorithm on tensor cores, and an algorithm whose status is NOT_SUPPORTED, or whose workspace
//    takes 1 GiB, or 12 times as much as the tensors and 8 MiB.
//  - Then, in varying order, an algorithm without a workspace and an algorithm with 776 bytes.
//  - Last, for images and filters of 3x3 without strides, dilations and groups, Winograd's with 520
//    bytes, which uses tensor cores for some sizes.
// For one size in five, the last two lines are one algorithm with a workspace of 6 times as much as
// the tensors and 4 MiB. For one size in eleven, both are missing.
//
// Of half: a nondeterministic algorithm, an FFT, Winograd's, and then a product, on tensor cores,
// with 776 bytes for two sizes of three; for one size in eleven, the product would round factors.
//
// For another size in eleven, cudnnGetConvolution…Algorithm_v7 returns NOT_SUPPORTED.
//
// A run is one kernel in the handle's stream, which writes all of the workspace and adds in a fixed
// order, in float64. On tensor cores, factors of float32 are rounded to TF32. It reads the result
// only if beta isn't 0.
#pragma once

#include <string_view>

namespace skiff::cuda_emulation {

// Returns the stand-in's function of this name, or nullptr.
void* CudnnFunction(std::string_view name);

}  // namespace skiff::cuda_emulation
