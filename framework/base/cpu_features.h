// Facts about the processor of this machine, and the part of it that Skiff uses. All functions are
// thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace skiff {

// The vector instructions that layouts and kernels are made for, in ascending order.
enum class InstructionSet {
  kBaseline,  // what every processor of the architecture has
  kAvx2,
  kAvx512,
  kAvx512Bf16,  // products of bfloat16, too
};

// Returns "baseline", "avx2", "avx512" or "avx512_bf16".
std::string_view InstructionSetName(InstructionSet set);

// Returns the best instruction set of the processor.
InstructionSet ProcessorInstructionSet();

// Returns the instruction set that layouts and kernels use: the processor's, or a lesser one if the
// environment variable SKIFF_MAX_ISA names one. A process reads the variable once. oneDNN and
// Highway obey the same limit (operators/common/libraries/kernel_libraries.h). Throws Error
// (kInvalidArgument) if the variable names no instruction set.
InstructionSet UsedInstructionSet();

// Returns whether kernels multiply bfloat16 by the processor's instructions for that. Throws what
// UsedInstructionSet throws.
bool UsesAvx512Bf16();

// Returns the number of channels per block for blocked layouts: the number of floats in a vector
// register of the used instruction set (AVX-512: 16, AVX2: 8), else 1, which means no blocking.
// Throws what UsedInstructionSet throws.
int32_t PreferredChannelBlock();

// Returns the processor's name for itself, such as "AMD EPYC 9B45", or "unknown".
std::string CpuModelName();

}  // namespace skiff
