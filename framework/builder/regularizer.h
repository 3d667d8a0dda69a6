// Weight decay, added to the gradients by ops in the program.
#pragma once

#include <string>
#include <string_view>

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

// Returns the text of a parameter's own regularizer in its variable's attributes: "l2_decay
// 0.0001"; an empty text if it is undefined.
std::string RegularizerToText(const Regularizer& regularizer);
// Returns the regularizer of such a text. Throws an Error (kInvalidArgument) if it is another text.
Regularizer RegularizerFromText(std::string_view text);

}  // namespace skiff
