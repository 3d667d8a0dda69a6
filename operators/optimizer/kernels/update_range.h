// The elements that an optimizer's loop runs over, with the addresses of their parameters,
// gradients and states.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "operators/optimizer/kernels/update_numbers.h"

namespace skiff {

// How the formula takes a gradient g: g * rescale * scale + l2_decay * p + l1_decay * sign(p), with
// the parameter p.
template <typename T>
struct GradientForm {
  T rescale = 1;
  T scale = 1;
  T l1_decay = 0;
  T l2_decay = 0;

  // Returns whether the formula takes the gradient as it is.
  constexpr bool is_plain() const {
    return rescale == 1 && scale == 1 && l1_decay == 0 && l2_decay == 0;
  }
  friend bool operator==(const GradientForm&, const GradientForm&) = default;
};

// Elements that a formula updates with the same coefficients. An output array is its input, or
// overlaps with no array. Without `grad` and `half_grad` the gradient is 0.
template <typename T>
struct UpdateRange {
  // Returns the range from element `begin` on.
  UpdateRange From(int64_t begin) const {
    const auto advance = [begin](auto*& array) {
      if (array != nullptr) array += begin;
    };
    UpdateRange rest = *this;
    advance(rest.param);
    advance(rest.grad);
    advance(rest.param_out);
    advance(rest.half_grad);
    advance(rest.half_param_out);
    std::ranges::for_each(rest.states, advance);
    std::ranges::for_each(rest.states_out, advance);
    rest.count -= begin;
    return rest;
  }

  size_t parameter = 0;  // the index of the parameter, or of the first one of several
  const T* param = nullptr;
  const T* grad = nullptr;
  T* param_out = nullptr;
  // With multi_precision `param` has the master weights. half_grad replaces `grad` if the gradient
  // has two bytes; half_param_out takes param_out rounded. nullptr: the range has no such array.
  const uint16_t* half_grad = nullptr;
  uint16_t* half_param_out = nullptr;
  std::array<const T*, kMaxUpdateStates> states{};
  std::array<T*, kMaxUpdateStates> states_out{};
  int64_t count = 0;
  GradientForm<T> gradient;
  std::array<T, kMaxUpdateCoefficients> coefficients{};
};

}  // namespace skiff
