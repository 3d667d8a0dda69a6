// What the loops of optimizers run over: arrays of parameters, gradients and states.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "operators/optimizer/update_numbers_shared.h"

namespace skiff {

// What is added to a gradient, and by what it is multiplied first.
template <typename T>
struct GradientForm {
  T rescale = 1;
  T scale = 1;
  T l1_decay = 0;
  T l2_decay = 0;

  constexpr bool is_plain() const {
    return rescale == 1 && scale == 1 && l1_decay == 0 && l2_decay == 0;
  }
  friend bool operator==(const GradientForm&, const GradientForm&) = default;
};

// Elements that are updated by one formula with one set of coefficients. An output array is its
// input, or overlaps with none. Without `grad` and `half_grad` the gradient is 0.
template <typename T>
struct UpdateRange {
  // The same from element `begin` on.
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

  const T* param = nullptr;
  const T* grad = nullptr;
  T* param_out = nullptr;
  // Of parameters of a two-byte dtype, whose float32 master weights are `param`: the gradient
  // instead of `grad`, if it has that dtype, and what param_out is rounded to. nullptr: none.
  const uint16_t* half_grad = nullptr;
  uint16_t* half_param_out = nullptr;
  std::array<const T*, kMaxUpdateStates> states{};
  std::array<T*, kMaxUpdateStates> states_out{};
  int64_t count = 0;
  GradientForm<T> gradient;
  std::array<T, kMaxUpdateCoefficients> coefficients{};
};

}  // namespace skiff
