// A stand-in for cuBLASLt: products of float32 and float64 in column-major matrices.
//
// What it offers depends on the sizes alone, so that a test of several sizes meets all of it:
// algorithms with and without a workspace (of which the kernel writes every byte), algorithms for
// aligned matrices only, and none at all.
#pragma once

#include <string_view>

namespace skiff::cuda_emulation {

// Returns the stand-in's function of this name, nullptr if it has none.
void* CublasLtFunction(std::string_view name);

}  // namespace skiff::cuda_emulation
