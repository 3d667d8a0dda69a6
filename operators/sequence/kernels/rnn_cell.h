// One time step of the cells of rnn for one sequence. Its LSTM is that of lstm_cell.h.
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

// Compute a step. `gates` is g without Bias; on return r, z, g2 and c.
void ResetAfterGruForward(const ResetAfterGruCell<float>& cell, const float* before, float* gates,
                          float* hidden);
void ResetAfterGruForward(const ResetAfterGruCell<double>& cell, const double* before,
                          double* gates, double* hidden);

template <typename T>
struct RnnStepGradient {
  const T* hidden;  // of h, from the outside
  T* next;          // of h from later steps
  T* gates;         // of g
};

// Compute the gradient of g, and in `next` that of h' without the products.
void ResetAfterGruBackward(const ResetAfterGruCell<float>& cell, const float* before,
                           const float* gates, const RnnStepGradient<float>& gradient);
void ResetAfterGruBackward(const ResetAfterGruCell<double>& cell, const double* before,
                           const double* gates, const RnnStepGradient<double>& gradient);

template <typename T>
struct SimpleRnnCell {
  int64_t size = 0;  // H
  RecurrentActivation activation;
  const T* bias = nullptr;  // [H]
};

// Compute a step. `gates` is g without Bias.
void SimpleRnnForward(const SimpleRnnCell<float>& cell, const float* gates, float* hidden);
void SimpleRnnForward(const SimpleRnnCell<double>& cell, const double* gates, double* hidden);

// Compute the gradient of g.
void SimpleRnnBackward(const SimpleRnnCell<float>& cell, const float* hidden,
                       const RnnStepGradient<float>& gradient);
void SimpleRnnBackward(const SimpleRnnCell<double>& cell, const double* hidden,
                       const RnnStepGradient<double>& gradient);

}  // namespace skiff
