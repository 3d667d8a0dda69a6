// Gradient clipping, done by ops in the program before regularization.
#pragma once

namespace skiff {

struct GradientClip {
  enum class Kind { kNone, kValue, kNorm, kGlobalNorm };
  Kind kind = Kind::kNone;
  float min = 0.0f;       // of kValue
  float max = 0.0f;       // of kValue
  float max_norm = 0.0f;  // of kNorm and kGlobalNorm

  bool defined() const { return kind != Kind::kNone; }
};

// Each element to [min, max]. Error if min > max.
GradientClip ClipByValue(float min, float max);
// Each element to [-limit, limit]. Error for a negative limit.
GradientClip ClipByValue(float limit);
// Each gradient by max_norm / max(max_norm, its L2 norm). Error unless max_norm > 0.
GradientClip ClipByNorm(float max_norm);
// All gradients by max_norm / max(max_norm, the L2 norm of all of them together). Error unless
// max_norm > 0.
GradientClip ClipByGlobalNorm(float max_norm);

}  // namespace skiff
