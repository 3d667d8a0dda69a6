// A time step of an LSTM on a device; lstm_cell.h has the formulas.
#pragma once

#include <cstdint>

#include "operators/sequence/kernels/cuda_activation.cuh"
#include "operators/sequence/kernels/cuda_steps.cuh"
#include "operators/sequence/kernels/lstm_cell.h"

namespace skiff {

// One number of each block of the gates: g, activated gates, or the gradient of g.
template <typename T>
struct LstmGates {
  T candidate;
  T input;
  T forget;
  T output;

  // Returns those at number i of `size`; at(k) is number k of a row of gates.
  template <class At>
  __device__ static LstmGates Load(const LstmGateOrder& order, int64_t size, int64_t i,
                                   const At& at) {
    return {at(order.candidate * size + i), at(order.input * size + i), at(order.forget * size + i),
            at(order.output * size + i)};
  }
  __device__ void Store(const LstmGateOrder& order, int64_t size, int64_t i, T* row) const {
    row[order.candidate * size + i] = candidate;
    row[order.input * size + i] = input;
    row[order.forget * size + i] = forget;
    row[order.output * size + i] = output;
  }
};

template <typename T>
struct LstmState {
  T cell;
  T activated;
  T hidden;
};

// Activates `gates`, which are g on entry, and returns the state. i: which number of the cell.
template <typename T>
__device__ LstmState<T> LstmForwardNumber(const LstmCell<T>& cell, int64_t i, T before,
                                          LstmGates<T>* gates) {
  if (cell.peepholes != nullptr) {
    gates->input += cell.peepholes[i] * before;
    gates->forget += cell.peepholes[cell.size + i] * before;
  }
  gates->candidate = Activated(cell.candidate, gates->candidate);
  gates->input = Activated(cell.gate, gates->input);
  gates->forget = Activated(cell.gate, gates->forget);
  LstmState<T> state;
  state.cell = Clipped(cell.cell_clip, gates->input * gates->candidate + gates->forget * before);
  if (cell.peepholes != nullptr) gates->output += cell.peepholes[2 * cell.size + i] * state.cell;
  gates->output = Activated(cell.gate, gates->output);
  state.activated = Activated(cell.cell, state.cell);
  state.hidden = gates->output * state.activated;
  return state;
}

// Returns the gradient of g. d_cell is the gradient of the cell, from the outside and from later
// steps; on return the gradient of the cell before.
template <typename T>
__device__ LstmGates<T> LstmBackwardNumber(const LstmCell<T>& cell, int64_t i,
                                           const LstmGates<T>& gates, T before, T of_cell,
                                           T activated, T d_hidden, T* d_cell) {
  LstmGates<T> d;
  d.output = ThroughActivation(cell.gate, gates.output, d_hidden * activated);
  T through_cell = *d_cell + ThroughActivation(cell.cell, activated, d_hidden * gates.output);
  if (cell.peepholes != nullptr) through_cell += cell.peepholes[2 * cell.size + i] * d.output;
  if (IsAtLimit(cell.cell_clip, of_cell)) through_cell = 0;
  d.candidate = ThroughActivation(cell.candidate, gates.candidate, through_cell * gates.input);
  d.input = ThroughActivation(cell.gate, gates.input, through_cell * gates.candidate);
  d.forget = ThroughActivation(cell.gate, gates.forget, through_cell * before);
  through_cell *= gates.forget;
  if (cell.peepholes != nullptr) {
    through_cell += cell.peepholes[i] * d.input + cell.peepholes[cell.size + i] * d.forget;
  }
  *d_cell = through_cell;
  return d;
}

// A step of all sequences that have a row in it. Of the arrays of all rows, those named batch_ are
// in batch order; nullptr: not wanted.
template <typename T>
struct LstmForwardStep {
  LstmCell<T> cell;  // its bias may be nullptr
  T forget_bias = 0;
  const T* input = nullptr;    // of all rows
  const T* product = nullptr;  // [count, 4H], is added to the input; nullptr: zeros
  const T* c0 = nullptr;       // nullptr: zeros
  T* states = nullptr;         // hidden states of the step's sequences, set
  T* hidden = nullptr;         // of all rows, or nullptr
  T* cells = nullptr;          // of all rows
  T* batch_gates = nullptr;
  T* batch_activated = nullptr;
  T* batch_hidden = nullptr;
};

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    LstmForwardRows(CudaStep step, LstmForwardStep<T> args, int threads_of_row) {
  const int64_t size = args.cell.size;
  ForEachColumn(
      step.count, size, threads_of_row, [&](int64_t j) { return StepRow(step, j); },
      [&](int64_t j, int64_t i, const StepRow& of) {
        const T* input = args.input + of.row * 4 * size;
        LstmGates<T> gates = LstmGates<T>::Load(args.cell.order, size, i, [&](int64_t k) {
          T sum = input[k];
          if (args.cell.bias != nullptr) sum += args.cell.bias[k];
          return args.product == nullptr ? sum : args.product[j * 4 * size + k] + sum;
        });
        gates.forget += args.forget_bias;
        const LstmState<T> state =
            LstmForwardNumber(args.cell, i, of.Before<T>(args.cells, args.c0, size, i), &gates);
        args.cells[of.row * size + i] = state.cell;
        args.states[j * size + i] = state.hidden;
        if (args.hidden != nullptr) args.hidden[of.row * size + i] = state.hidden;
        const int64_t batch_row = step.first + j;
        if (args.batch_hidden != nullptr) args.batch_hidden[batch_row * size + i] = state.hidden;
        if (args.batch_gates != nullptr)
          gates.Store(args.cell.order, size, i, args.batch_gates + batch_row * 4 * size);
        if (args.batch_activated != nullptr)
          args.batch_activated[batch_row * size + i] = state.activated;
      });
}

template <typename T>
void LaunchLstmForward(const KernelContext& run, const CudaStep& step,
                       const LstmForwardStep<T>& args) {
  const RowThreads threads(step.count, args.cell.size);
  LstmForwardRows<T>
      <<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(step, args, threads.of_row);
  CheckLaunch("step of an LSTM");
}

template <typename T>
struct LstmBackwardStep {
  LstmCell<T> cell;
  const T* cells = nullptr;  // of all rows
  const T* c0 = nullptr;
  const T* hidden = nullptr;  // of all rows; for batch_before
  const T* h0 = nullptr;
  const T* batch_gates = nullptr;
  const T* batch_activated = nullptr;
  const T* hidden_grad = nullptr;  // from the outside, of all rows, or nullptr
  const T* cell_grad = nullptr;    // the same
  const T* next_hidden = nullptr;  // from the next step, of its sequences
  bool has_all_next = false;       // next_hidden is there for all sequences of this step
  T* next_cell = nullptr;          // the same; on return that of the cells before
  T* batch_gates_grad = nullptr;
  T* input_grad = nullptr;     // the same for all rows, or nullptr
  T* batch_before = nullptr;   // the hidden states before, or nullptr
  T* peephole_sums = nullptr;  // [sequences, 3H], added to: the gradient of the peepholes
};

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    LstmBackwardRows(CudaStep step, LstmBackwardStep<T> args, int threads_of_row) {
  const int64_t size = args.cell.size;
  ForEachColumn(
      step.count, size, threads_of_row, [&](int64_t j) { return StepRow(step, j); },
      [&](int64_t j, int64_t i, const StepRow& of) {
        const int64_t batch_row = step.first + j;
        const int64_t at = of.row * size + i;
        const bool has_next = j < step.later;
        const T* gates = args.batch_gates + batch_row * 4 * size;
        const T before = of.Before<T>(args.cells, args.c0, size, i);
        const T d_hidden = (args.hidden_grad == nullptr ? T{0} : args.hidden_grad[at]) +
                           (has_next || args.has_all_next ? args.next_hidden[j * size + i] : T{0});
        T d_cell = has_next ? args.next_cell[j * size + i] : T{0};
        if (args.cell_grad != nullptr) d_cell += args.cell_grad[at];
        const LstmGates<T> d = LstmBackwardNumber(
            args.cell, i,
            LstmGates<T>::Load(args.cell.order, size, i, [&](int64_t k) { return gates[k]; }),
            before, args.cells[at], args.batch_activated[batch_row * size + i], d_hidden, &d_cell);
        args.next_cell[j * size + i] = d_cell;
        d.Store(args.cell.order, size, i, args.batch_gates_grad + batch_row * 4 * size);
        if (args.input_grad != nullptr)
          d.Store(args.cell.order, size, i, args.input_grad + of.row * 4 * size);
        if (args.batch_before != nullptr)
          args.batch_before[batch_row * size + i] = of.Before<T>(args.hidden, args.h0, size, i);
        if (args.peephole_sums != nullptr) {
          T* sums = args.peephole_sums + j * 3 * size + i;
          sums[0] = (has_next ? sums[0] : T{0}) + d.input * before;
          sums[size] = (has_next ? sums[size] : T{0}) + d.forget * before;
          sums[2 * size] = (has_next ? sums[2 * size] : T{0}) + d.output * args.cells[at];
        }
      });
}

template <typename T>
void LaunchLstmBackward(const KernelContext& run, const CudaStep& step,
                        const LstmBackwardStep<T>& args) {
  const RowThreads threads(step.count, args.cell.size);
  LstmBackwardRows<T>
      <<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(step, args, threads.of_row);
  CheckLaunch("gradient of a step of an LSTM");
}

}  // namespace skiff
