// A stand-in for cuBLASLt: products in column-major matrices, with a bias (CUBLASLT_EPILOGUE_BIAS)
// or without, of the types that the library documents and Skiff uses:
//
//   sums                          alpha, beta   A, B       C, D, bias
//   CUBLAS_COMPUTE_64F            float64       float64    float64
//   CUBLAS_COMPUTE_32F            float32       float32    float32
//   CUBLAS_COMPUTE_32F            float32       half       the same half, or float32
//   CUBLAS_COMPUTE_32F_FAST_TF32  float32       float32    float32; A and B are rounded
//
// It refuses (CUBLAS_STATUS_INVALID_VALUE) handles and descriptors that aren't alive; handles and
// streams of another device than the current one; sizes,
// batches and types that don't fit each other; a leading dimension below the rows; an algorithm
// that wasn't chosen for this product; a workspace that is smaller than it asked for, or not
// at a multiple of 256 bytes; matrices, and a bias, at addresses that aren't multiples of the
// alignment that the preference named; a null bias; a null algorithm; attributes that Skiff doesn't
// set; alignments that are no power of 2 or less than an element; and preferences that allow sums
// in place, whose order varies, or of parts in half. CUBLAS_STATUS_NOT_SUPPORTED: other types and
// epilogues.
//
// The offered algorithms depend on k, so that products of a few sizes meet all cases. k % 11 == 6:
// nothing (CUBLAS_STATUS_NOT_SUPPORTED). k % 13 == 4: nothing with a bias. k % 7 == 5: nothing for
// matrices aligned to less than 16 bytes (no results). Odd k: an algorithm with a workspace of
// 1,040 bytes, all of which its kernel writes, if the preference allows so many. Else: one without.
#pragma once

#include <string_view>

namespace skiff::cuda_emulation {

// Returns the stand-in's function of this name, or nullptr.
void* CublasLtFunction(std::string_view name);

}  // namespace skiff::cuda_emulation
