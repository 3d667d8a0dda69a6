// The loops of rotary_embedding over a row, and the sines and cosines that they take. Half is
// converted in registers.
#pragma once

#include <cstdint>

#include "operators/common/half.h"
#include "operators/nn/attention/rotary_columns.h"

namespace skiff {

// The sines and cosines of one position: `width` numbers each. With pairs (i, i + d / 2), number i
// is that of pair i. Interleaved pairs have two numbers, one for each column, and the first sine is
// negative: a vector of columns is turned as it lies in memory.
template <typename Wide>
struct RotaryTurn {
  static int64_t WidthOf(const RotaryColumns& columns) {
    return columns.is_interleaved ? 2 * columns.pairs : columns.pairs;
  }

  void Set(const RotaryColumns& columns, int64_t pair, Wide cosine, Wide sine) const {
    if (columns.is_interleaved) {
      cosines[2 * pair] = cosines[2 * pair + 1] = cosine;
      sines[2 * pair] = -sine;
      sines[2 * pair + 1] = sine;
    } else {
      cosines[pair] = cosine;
      sines[pair] = sine;
    }
  }

  Wide* cosines;
  Wide* sines;
};

// Turns the columns of a row. `to` may be x. T is float, double or half.
template <typename T>
using TurnRotaryRow = void (*)(const RotaryColumns& columns, const T* x,
                               const RotaryTurn<WideType<T>>& turn, T* to);

// Returns the loop of the instruction set in use.
template <typename T>
TurnRotaryRow<T> TurnRotaryRowOf();

}  // namespace skiff
