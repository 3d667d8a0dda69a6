// Weight decay, added to the gradients by ops in the program.
#pragma once

namespace skiff {

struct Regularizer {
  enum class Kind { kNone, kL1, kL2 };
  Kind kind = Kind::kNone;
  float coefficient = 0.0f;

  bool defined() const { return kind != Kind::kNone; }
  friend bool operator==(const Regularizer&, const Regularizer&) = default;
};

// gradient + coefficient · sign(parameter)
Regularizer L1Decay(float coefficient);
// gradient + coefficient · parameter
Regularizer L2Decay(float coefficient);

}  // namespace skiff
