// One time step of an LSTM for one sequence.
//
//   c~ = candidate(g0)                    g: Input + h' · Weight + Bias, four blocks of H numbers
//   i  = gate(g1 + w_i ⊙ c')              c', h': the cell and the hidden state of the step before
//   f  = gate(g2 + w_f ⊙ c')              w: the peepholes
//   c  = i ⊙ c~ + f ⊙ c', at most cell_clip from 0
//   o  = gate(g3 + w_o ⊙ c)
//   h  = o ⊙ cell(c)
//
// Of half, the numbers that T stands for in LstmFunctions are half: input, hidden state, and the
// gradient of that.
#pragma once

#include <cstdint>

#include "operators/common/half.h"
#include "operators/sequence/kernels/recurrent_activation.h"

namespace skiff {

// The positions of the blocks of a row of gates.
struct LstmGateOrder {
  int64_t candidate = 0;
  int64_t input = 1;
  int64_t forget = 2;
  int64_t output = 3;
};

template <typename T>
struct LstmCell {
  int64_t size = 0;  // H
  RecurrentActivation gate;
  RecurrentActivation cell;
  RecurrentActivation candidate;
  T cell_clip = 0;               // 0: no limit
  LstmGateOrder order = {};      // of g, and so of bias and gates
  const T* bias = nullptr;       // [4H]
  const T* peepholes = nullptr;  // [3H], w_i w_f w_o, or nullptr
};

// Arrays of H numbers, or of 4H.
template <typename T>
struct LstmStep {
  const T* cell_before;
  T* gates;  // 4H: c~ i f o; for LstmFunctions::forward at first the product h' · Weight, or all of
             // g but Bias
  T* cell;
  T* activated_cell;  // cell(c)
};

template <typename T>
struct LstmStepGradient {
  const T* hidden;          // from the outside
  const WideType<T>* cell;  // from the outside, or nullptr
  // From the following steps. For the cell, on return, the gradient of the cell before.
  const WideType<T>* next_hidden;
  WideType<T>* next_cell;
  WideType<T>* gates;  // 4H: on return the gradient of g
};

// The functions of a step for a sequence.
template <typename T>
struct LstmFunctions {
  using Wide = WideType<T>;
  using Cell = LstmCell<Wide>;

  // Returns those that are compiled for the processor's instruction set. T: float, double or
  // BFloat16.
  static LstmFunctions Used();

  // Computes a step. `input` is nullptr if the gates contain it. `hidden` may be
  // step.activated_cell.
  void (*forward)(const Cell& cell, const T* input, const LstmStep<Wide>& step, T* hidden);
  // Computes the gradient of a step.
  void (*backward)(const Cell& cell, const LstmStep<const Wide>& step,
                   const LstmStepGradient<T>& gradient);
};

}  // namespace skiff
