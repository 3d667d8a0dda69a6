// One time step of a gated recurrent unit for one sequence.
//
//   u = gate(g0 + h' · W_u)                      g: Input + Bias, three blocks of H numbers
//   r = gate(g1 + h' · W_r)                      h': the hidden state of the step before
//   c = candidate(g2 + (r ⊙ h') · W_c)
//   h = (1 - u) ⊙ h' + u ⊙ c, or with origin_mode u ⊙ h' + (1 - u) ⊙ c
//
// Since W_c multiplies what depends on r, a step is two functions, each after a product.
#pragma once

#include <cstdint>

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

// Compute u, r and the reset state r ⊙ h'.
void GruReset(const GruCell<float>& cell, const float* input, const float* before, float* gates,
              float* reset);
void GruReset(const GruCell<double>& cell, const double* input, const double* before, double* gates,
              double* reset);
// Then compute c and h.
void GruForward(const GruCell<float>& cell, const float* input, const float* before, float* gates,
                float* hidden);
void GruForward(const GruCell<double>& cell, const double* input, const double* before,
                double* gates, double* hidden);

template <typename T>
struct GruStepGradient {
  const T* hidden;  // of h, from the outside
  T* before;        // of h from later steps, which becomes that of h', as far as it is known
  T* gates;         // of g
};

// Compute the gradient of g0 and g2, and that of h' without the products.
void GruBackward(const GruCell<float>& cell, const float* before, const float* gates,
                 const GruStepGradient<float>& gradient);
void GruBackward(const GruCell<double>& cell, const double* before, const double* gates,
                 const GruStepGradient<double>& gradient);
// Then, given the gradient of the reset state, compute that of g1 and add to that of h'.
void GruResetBackward(const GruCell<float>& cell, const float* before, const float* gates,
                      const float* reset_gradient, const GruStepGradient<float>& gradient);
void GruResetBackward(const GruCell<double>& cell, const double* before, const double* gates,
                      const double* reset_gradient, const GruStepGradient<double>& gradient);

}  // namespace skiff
