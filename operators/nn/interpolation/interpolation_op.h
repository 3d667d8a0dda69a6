// What differs between the ops that resize images (interpolation.h).
#pragma once

namespace skiff {

enum class Interpolation { kNearest, kBilinear };

// In version 1, `scale` is one number, and gives nothing but the size of the output: distances in
// the input are always by the sizes of both.
enum class InterpolationVersion { kFirst = 1, kSecond = 2 };

struct InterpolationOp {
  Interpolation method = Interpolation::kNearest;
  InterpolationVersion version = InterpolationVersion::kSecond;
};

}  // namespace skiff
