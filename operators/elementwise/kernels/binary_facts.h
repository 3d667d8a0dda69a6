// What the file of a binary formula (binary/*-inl.h) says about its op. Includes little, so that
// .cu files compile fast.
#pragma once

#include "framework/base/static_text.h"

namespace skiff {

// The gradient of an operand: the arrays that it reads besides Out@GRAD, or that the gradient is
// Out@GRAD itself.
struct BinaryGradient {
  bool reads_x = false;
  bool reads_y = false;
  bool reads_out = false;
  bool is_passed = false;  // then the formula has no function for it
};

struct BinaryFacts {
  StaticText type;
  StaticText doc;
  // The documentation of the gradient op. Empty: there is none, and no_gradient_reason says why.
  StaticText grad_doc = {};
  StaticText no_gradient_reason = {};
  bool zero_preserving = false;
  bool grad_zero_preserving = false;
  // The formula's XGradient and YGradient. The gradient op always reads the shapes of X and Y. It
  // has the input Out only if one of the two reads Out.
  BinaryGradient x_gradient = {};
  BinaryGradient y_gradient = {};
  // Whether X may be selected rows if Y is one number: the op is then linear and maps zeros to
  // zeros.
  bool takes_selected_rows = false;
  // Whether Y divides: an integer op then refuses a Y of 0.
  bool divides = false;
  // Whether the formulas are defined for vectors, too.
  bool has_vectors = true;
  // Whether the op computes in float32 where the program is half (Precision::kHigh): where an error
  // of an operand grows, or makes the result jump. Else the op follows.
  bool needs_float32 = false;
  // Whether the op combines bits: it takes bools, int32 and int64 alone. Such ops have no `axis`.
  bool is_bitwise = false;

  constexpr bool has_gradient() const { return no_gradient_reason.empty(); }
  // The arrays that at least one of the two gradients reads.
  constexpr BinaryGradient gradients() const {
    return {.reads_x = x_gradient.reads_x || y_gradient.reads_x,
            .reads_y = x_gradient.reads_y || y_gradient.reads_y,
            .reads_out = x_gradient.reads_out || y_gradient.reads_out};
  }
};

}  // namespace skiff
