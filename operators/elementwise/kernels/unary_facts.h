// What the file of a unary formula (unary/*-inl.h) says about its op. Includes little, so that .cu
// files compile fast.
#pragma once

#include <array>

#include "framework/base/static_text.h"

namespace skiff {

enum class NumberRange { kAny, kPositive, kNotNegative, kNotZero };

// A number in a formula: the value of an attribute of the op, which is a float, or a bool taken as
// 0 or 1.
struct FormulaNumber {
  StaticText name = {};
  float default_value = 0;
  StaticText doc = {};
  NumberRange range = NumberRange::kAny;
  bool is_bool = false;
};

inline constexpr int kMostUnaryNumbers = 3;

// The values of these attributes, in order.
using UnaryNumbers = std::array<float, kMostUnaryNumbers>;

struct UnaryFacts {
  StaticText type;
  StaticText doc;
  StaticText grad_doc;
  // The slot that the gradient op reads besides Out@GRAD: "X", "Out" or "" for none.
  StaticText grad_reads;
  // A slot that Fluid's gradient op has as well and whose data isn't read: "Out" or "".
  StaticText grad_ignores = {};
  bool zero_preserving = false;
  bool grad_zero_preserving = false;
  // Whether the op also takes int32 and int64 on the CPU. The gradient op takes floats only.
  bool takes_integers = false;
  // Whether the formula is defined for vectors, too.
  bool has_vectors = true;
  // Whether the op computes in float32 where the program is half (Precision::kHigh): where an error
  // of the operand grows, or the result spans far more than half does. Else the op follows.
  bool needs_float32 = false;
  // Those with a name come first. A formula of an op that has some has a constructor from their
  // values (UnaryNumbers).
  std::array<FormulaNumber, kMostUnaryNumbers> numbers = {};
};

// Returns a formula, made of the numbers if its facts name some.
template <class Formula>
Formula MakeFormula([[maybe_unused]] const UnaryNumbers& numbers) {
  if constexpr (Formula::kFacts.numbers[0].name.empty()) {
    return Formula();
  } else {
    return Formula(numbers);
  }
}

}  // namespace skiff
