// The functions of lstm_unit, which are compiled once per instruction set.
#pragma once

#include <cstdint>

namespace skiff {

// Of a row of `size` cells. `gates` [4 * size] is overwritten.
template <typename T>
struct LstmUnitFunctions {
  // Returns those that are compiled for the processor's instruction set. T: float or double.
  static LstmUnitFunctions Used();

  void (*forward)(int64_t size, const T* x, const T* before, T forget_bias, T* gates, T* cell,
                  T* hidden);
  // d_cell and d_hidden are the gradients of C and H.
  void (*backward)(int64_t size, const T* x, const T* before, const T* cell, T forget_bias,
                   const T* d_cell, const T* d_hidden, T* gates, T* d_x, T* d_before);
};

}  // namespace skiff
