// One time step of a gated recurrent unit for one sequence.
//
//   u = gate(g0 + h' · W_u)                      g: Input + Bias, three blocks of H numbers
//   r = gate(g1 + h' · W_r)                      h': the hidden state of the step before
//   c = candidate(g2 + (r ⊙ h') · W_c)
//   h = (1 - u) ⊙ h' + u ⊙ c, or with origin_mode u ⊙ h' + (1 - u) ⊙ c
//
// Since W_c multiplies what depends on r, a step is two functions, each after a product.
//
// Of half, the numbers that T stands for are half: input, what products read, and outputs.
#pragma once

#include <cstdint>

#include "operators/common/half.h"
#include "operators/sequence/kernels/recurrent_activation.h"

namespace skiff {

template <typename T>
struct GruCell {
  int64_t size = 0;  // H
  RecurrentActivation gate;
  RecurrentActivation candidate;
  bool origin_mode = false;
  const T* bias = nullptr;  // [3H], or nullptr
};

// `gates` are u, r and c; before the functions the products with the weights are in their places.

template <typename T>
struct GruStepGradient {
  const T* hidden;      // of h, from the outside
  WideType<T>* before;  // of h from later steps, becomes the gradient of h' as far as known
  WideType<T>* gates;   // of g
};

// The functions of a step for a sequence.
template <typename T>
struct GruFunctions {
  using Wide = WideType<T>;
  using Cell = GruCell<Wide>;

  // Returns those that are compiled for the processor's instruction set. T: float, double or
  // BFloat16.
  static GruFunctions Used();

  // Computes u, r and the reset state r ⊙ h'.
  void (*reset)(const Cell& cell, const T* input, const Wide* before, Wide* gates, T* reset);
  // Then computes c and h: as it goes on, which may overwrite h', and as it is stored, which may be
  // the same array.
  void (*forward)(const Cell& cell, const T* input, const Wide* before, Wide* gates, Wide* after,
                  T* hidden);
  // Computes the gradients of g0 and g2, and the gradient of h' without the products.
  void (*backward)(const Cell& cell, const T* before, const Wide* gates,
                   const GruStepGradient<T>& gradient);
  // Then, given the gradient of the reset state, computes the gradient of g1 and adds to the
  // gradient of h'.
  void (*reset_backward)(const Cell& cell, const T* before, const Wide* gates,
                         const Wide* reset_gradient, const GruStepGradient<T>& gradient);
  // Computes the reset state again.
  void (*reset_state)(const Cell& cell, const T* before, const Wide* gates, T* reset);
};

}  // namespace skiff
