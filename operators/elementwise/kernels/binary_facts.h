// What the file of a binary formula (binary/*-inl.h) says about its op. Includes little, so that
// .cu files compile fast.
#pragma once

#include "framework/base/static_text.h"

namespace skiff {

// The arrays that a gradient reads besides Out@GRAD.
struct BinaryReads {
  bool x = false;
  bool y = false;
  bool out = false;
};

struct BinaryFacts {
  StaticText type;
  StaticText doc;
  // The documentation of the gradient op. Empty: there is none, and no_gradient_reason says why.
  StaticText grad_doc = {};
  StaticText no_gradient_reason = {};
  bool zero_preserving = false;
  bool grad_zero_preserving = false;
  // What the gradients of X and Y read. Their op always reads the shapes of X and Y; Out is an
  // input of it only if it is read.
  BinaryReads x_gradient = {};
  BinaryReads y_gradient = {};
  // Whether X may be selected rows if Y is one number: the op is then linear and maps zeros to
  // zeros.
  bool takes_selected_rows = false;
  // Whether Y divides: an integer op then refuses a Y of 0.
  bool divides = false;
  // Whether the formulas are defined for vectors, too.
  bool has_vectors = true;

  constexpr bool has_gradient() const { return no_gradient_reason.empty(); }
  constexpr BinaryReads gradient_reads() const {
    return {.x = x_gradient.x || y_gradient.x,
            .y = x_gradient.y || y_gradient.y,
            .out = x_gradient.out || y_gradient.out};
  }
};

// Whether a formula has no XGradient (YGradient): the gradient of X (Y) is Out@GRAD itself.
template <class Formula>
inline constexpr bool kPassesXGradient = !requires(const Formula& formula, float v) {
  formula.XGradient(v, v, v, v);
};
template <class Formula>
inline constexpr bool kPassesYGradient = !requires(const Formula& formula, float v) {
  formula.YGradient(v, v, v, v);
};

}  // namespace skiff
