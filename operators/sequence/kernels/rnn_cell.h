// One time step of the cells of rnn for one sequence. The LSTM is that of lstm_cell.h.
//
// gru: the reset gate multiplies the product with the hidden state, not the state (Cho et al. 2014
// in the form of cuDNN and PyTorch)
//   r = sigmoid(g0)                g: input's product + h' · Weight + Bias, blocks of H numbers;
//   z = sigmoid(g1)                g2 without the input's product, g3 without h' · Weight
//   c = tanh(g3 + r ⊙ g2)          h': the hidden state of the step before
//   h = (1 - z) ⊙ c + z ⊙ h'
//
// simple (Elman 1990)
//   h = activation(g)
#pragma once

#include <cstdint>

#include "operators/sequence/kernels/recurrent_activation.h"

namespace skiff {

template <typename T>
struct ResetAfterGruCell {
  int64_t size = 0;         // H
  const T* bias = nullptr;  // [4H]
};

template <typename T>
struct RnnStepGradient {
  const T* hidden;  // of h, from the outside
  T* next;          // of h from later steps
  T* gates;         // of g
};

template <typename T>
struct SimpleRnnCell {
  int64_t size = 0;  // H
  RecurrentActivation activation;
  const T* bias = nullptr;  // [H]
};

// The functions of a step for a sequence. Before a forward function, the gates are g without Bias.
template <typename T>
struct RnnFunctions {
  // Returns those that are compiled for the processor's instruction set. T: float or double.
  static RnnFunctions Used();

  // Computes a step; on return the gates are r, z, g2 and c.
  void (*gru_forward)(const ResetAfterGruCell<T>& cell, const T* before, T* gates, T* hidden);
  // Computes the gradient of g, and in `next` the gradient of h' without the products.
  void (*gru_backward)(const ResetAfterGruCell<T>& cell, const T* before, const T* gates,
                       const RnnStepGradient<T>& gradient);
  // Computes a step.
  void (*simple_forward)(const SimpleRnnCell<T>& cell, const T* gates, T* hidden);
  // Computes the gradient of g.
  void (*simple_backward)(const SimpleRnnCell<T>& cell, const T* hidden,
                          const RnnStepGradient<T>& gradient);
};

}  // namespace skiff
