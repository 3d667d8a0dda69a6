#include "framework/builder/gradient_clip.h"

#include "framework/base/error.h"

namespace skiff {
namespace {

GradientClip OfNorm(GradientClip::Kind kind, float max_norm) {
  SKIFF_ENFORCE(max_norm > 0.0f, kInvalidArgument, "gradient clip: the largest norm is ", max_norm,
                ", expected a positive number");
  return {.kind = kind, .max_norm = max_norm};
}

}  // namespace

GradientClip ClipByValue(float min, float max) {
  SKIFF_ENFORCE(min <= max, kInvalidArgument, "gradient clip: min = ", min,
                " is above max = ", max);
  return {.kind = GradientClip::Kind::kValue, .min = min, .max = max};
}

GradientClip ClipByValue(float limit) { return ClipByValue(-limit, limit); }
GradientClip ClipByNorm(float max_norm) { return OfNorm(GradientClip::Kind::kNorm, max_norm); }
GradientClip ClipByGlobalNorm(float max_norm) {
  return OfNorm(GradientClip::Kind::kGlobalNorm, max_norm);
}

}  // namespace skiff
