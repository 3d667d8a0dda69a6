// What lstm and lstmp have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "framework/base/parallel.h"
#include "framework/op/op_context.h"
#include "operators/sequence/kernels/lstm_cell.h"
#include "operators/sequence/kernels/time_steps.h"

namespace skiff {

inline bool HasPeepholes(const OpContext& context) { return context.Attr<bool>("use_peepholes"); }

// Returns the columns of Bias for cells of this size, -1 if it is unknown.
int64_t LstmBiasWidth(const OpContext& context, int64_t size);

// Returns the cell that the attributes describe, without bias.
template <typename T>
LstmCell<T> LstmCellOf(const OpContext& context, int64_t size) {
  return {.size = size,
          .gate = ActivationOf(context, "gate_activation"),
          .cell = ActivationOf(context, "cell_activation"),
          .candidate = ActivationOf(context, "candidate_activation")};
}

// Returns the cell with an input Bias.
template <typename T>
LstmCell<T> WithBias(LstmCell<T> cell, const T* bias, bool has_peepholes) {
  cell.bias = bias;
  if (has_peepholes) cell.peepholes = bias + 4 * cell.size;
  return cell;
}

// Returns the attributes that both ops have.
std::vector<AttrDef> LstmAttributes();

// The cell of a row of a sequence and what its peepholes see and affect.
template <typename T>
struct PeepholeRow {
  const T* before;  // the cell of the row before
  const T* cell;
  const T* gates_gradient;  // [4H]
};

// Sets `sums` [3H] to the gradients of w_i, w_f and w_o. row_of(step, j) returns the PeepholeRow of
// sequence j in a time step.
template <typename T, typename RowOf>
void SumPeepholes(const TimeSteps& steps, int64_t size, const RowOf& row_of, T* sums) {
  ParallelFor(size, 16, [&](int64_t begin, int64_t end) {
    for (int64_t k = 0; k < 3; ++k) std::fill(sums + k * size + begin, sums + k * size + end, T{0});
    steps.ForEach([&](const TimeSteps::Step& step) {
      for (int64_t j = 0; j < step.count; ++j) {
        const PeepholeRow<T> row = row_of(step, j);
        for (int64_t i = begin; i < end; ++i) {
          sums[i] += row.gates_gradient[size + i] * row.before[i];
          sums[size + i] += row.gates_gradient[2 * size + i] * row.before[i];
          sums[2 * size + i] += row.gates_gradient[3 * size + i] * row.cell[i];
        }
      }
    });
  });
}

}  // namespace skiff
