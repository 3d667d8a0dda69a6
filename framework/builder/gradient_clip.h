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

// Clips each element to [min, max]. Throws an Error (kInvalidArgument) if min > max.
GradientClip ClipByValue(float min, float max);
// Clips each element to [-limit, limit]. Throws an Error (kInvalidArgument) if limit < 0.
GradientClip ClipByValue(float limit);
// Multiplies each gradient by max_norm / max(max_norm, its L2 norm). Throws an Error
// (kInvalidArgument) if max_norm isn't positive.
GradientClip ClipByNorm(float max_norm);
// Multiplies all gradients by max_norm / max(max_norm, the L2 norm of all of them together). Throws
// an Error (kInvalidArgument) if max_norm isn't positive.
GradientClip ClipByGlobalNorm(float max_norm);

}  // namespace skiff
