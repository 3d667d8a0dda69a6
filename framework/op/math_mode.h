// How a device computes products and convolutions of float32.
#pragma once

#include <cstdint>
#include <string>

namespace skiff {

enum class MathMode : uint8_t {
  kFull,  // all in float32
  // Tensor cores may round factors to TF32, which has the range of float32 and ten bits after the
  // point. Sums stay float32.
  kTf32
};

// Parses "full" or "tf32". Throws Error for any other name.
MathMode MathModeFromName(const std::string& name);
// Returns "full" or "tf32".
std::string MathModeName(MathMode mode);

}  // namespace skiff
