// The loops of bias_gelu over a row. Half is converted in registers.
#pragma once

#include <cstdint>

#include "operators/common/half.h"

namespace skiff {

// T is float, double or half.
template <typename T>
struct GeluRows {
  // Sets out = gelu(x + bias).
  void (*forward)(bool approximate, const T* x, const WideType<T>* bias, int64_t count,
                  T* out) = nullptr;
  // Sets dx = dout · gelu'(x + bias), and adds it, not rounded, to `sums`. dx may be nullptr, x or
  // dout.
  void (*backward)(bool approximate, const T* x, const WideType<T>* bias, const T* dout,
                   int64_t count, T* dx, WideType<T>* sums) = nullptr;
};

// Returns the loops of the instruction set in use.
template <typename T>
GeluRows<T> GeluRowsOf();

}  // namespace skiff
