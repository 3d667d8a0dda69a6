// A time step of a gated recurrent unit on a device, for all sequences that have a row in it;
// gru_cell.h has the formulas. Each direction is two launches, each after a product.
#pragma once

#include <algorithm>
#include <cstdint>

#include "operators/sequence/kernels/cuda_activation.cuh"
#include "operators/sequence/kernels/cuda_steps.cuh"
#include "operators/sequence/kernels/gru_cell.h"

namespace skiff {

// Of the arrays of all rows, those named batch_ are in batch order; nullptr: not wanted.
template <typename T>
struct GruForwardStep {
  GruCell<T> cell;
  bool has_product = true;   // whether `gates` have products on entry; else those are 0
  const T* input = nullptr;  // of all rows
  // Of the sequences of the step:
  const T* before = nullptr;  // hidden states, nullptr: zeros
  T* states = nullptr;        // hidden states after the step; may be `before`
  T* gates = nullptr;         // [count, 3H]: the products; u is written to its place
  T* reset = nullptr;         // r ⊙ h', for the product that is c's
  T* hidden = nullptr;        // of all rows
  T* batch_gates = nullptr;
  T* batch_reset = nullptr;
  T* batch_hidden = nullptr;

  // g without what `gates` lack, at number k of a row.
  __device__ T Sum(const StepRow& of, int64_t j, int64_t k) const {
    T sum = input[of.row * 3 * cell.size + k];
    if (cell.bias != nullptr) sum += cell.bias[k];
    return has_product ? gates[j * 3 * cell.size + k] + sum : sum;
  }
};

// Computes u, r and the reset states.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    GruResetRows(CudaStep step, GruForwardStep<T> args, int threads_of_row) {
  const int64_t size = args.cell.size;
  ForEachColumn(
      step.count, size, threads_of_row, [&](int64_t j) { return StepRow(step, j); },
      [&](int64_t j, int64_t i, const StepRow& of) {
        const T update = Activated(args.cell.gate, args.Sum(of, j, i));
        const T reset = Activated(args.cell.gate, args.Sum(of, j, size + i));
        const T before = args.before == nullptr ? T{0} : args.before[j * size + i];
        args.gates[j * 3 * size + i] = update;
        args.reset[j * size + i] = reset * before;
        const int64_t batch_row = step.first + j;
        if (args.batch_gates != nullptr) {
          args.batch_gates[batch_row * 3 * size + i] = update;
          args.batch_gates[batch_row * 3 * size + size + i] = reset;
        }
        if (args.batch_reset != nullptr) args.batch_reset[batch_row * size + i] = reset * before;
      });
}

// Then computes c and h.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    GruForwardRows(CudaStep step, GruForwardStep<T> args, int threads_of_row) {
  const int64_t size = args.cell.size;
  ForEachColumn(
      step.count, size, threads_of_row, [&](int64_t j) { return StepRow(step, j); },
      [&](int64_t j, int64_t i, const StepRow& of) {
        const T candidate = Activated(args.cell.candidate, args.Sum(of, j, 2 * size + i));
        const T update = args.gates[j * 3 * size + i];
        const T before = args.before == nullptr ? T{0} : args.before[j * size + i];
        const T from = args.cell.origin_mode ? candidate : before;
        const T to = args.cell.origin_mode ? before : candidate;
        const T hidden = (1 - update) * from + update * to;
        args.hidden[of.row * size + i] = hidden;
        if (args.states != nullptr) args.states[j * size + i] = hidden;
        const int64_t batch_row = step.first + j;
        if (args.batch_gates != nullptr)
          args.batch_gates[batch_row * 3 * size + 2 * size + i] = candidate;
        if (args.batch_hidden != nullptr) args.batch_hidden[batch_row * size + i] = hidden;
      });
}

template <typename T>
struct GruBackwardStep {
  GruCell<T> cell;
  const T* hidden = nullptr;  // of all rows
  const T* h0 = nullptr;      // nullptr: zeros
  const T* batch_gates = nullptr;
  const T* hidden_grad = nullptr;  // from the outside, of all rows
  // Of the sequences of the step:
  T* next = nullptr;              // from the next step; on return, of the states before
  bool has_all_next = false;      // it is there for all sequences of this step
  const T* reset_grad = nullptr;  // of the reset states
  T* batch_gates_grad = nullptr;
  T* input_grad = nullptr;  // the same for all rows, or nullptr
  // For the gradient of the weights; nullptr: not wanted.
  T* batch_before = nullptr;
  T* batch_reset = nullptr;
};

// Computes the gradients of g0 and g2, and of h' without the products.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    GruBackwardRows(CudaStep step, GruBackwardStep<T> args, int threads_of_row) {
  const int64_t size = args.cell.size;
  ForEachColumn(
      step.count, size, threads_of_row, [&](int64_t j) { return StepRow(step, j); },
      [&](int64_t j, int64_t i, const StepRow& of) {
        const int64_t at = (step.first + j) * 3 * size + i;
        const T update = args.batch_gates[at];
        const T candidate = args.batch_gates[at + 2 * size];
        const T before = of.Before<T>(args.hidden, args.h0, size, i);
        const T d = args.hidden_grad[of.row * size + i] +
                    (j < step.later || args.has_all_next ? args.next[j * size + i] : T{0});
        const T d_update = d * (candidate - before);
        const T through_update = d * update;
        const bool is_origin = args.cell.origin_mode;
        const T d_g0 = ThroughActivation(args.cell.gate, update, is_origin ? -d_update : d_update);
        const T d_g2 = ThroughActivation(args.cell.candidate, candidate,
                                         is_origin ? d - through_update : through_update);
        args.next[j * size + i] = is_origin ? through_update : d - through_update;
        args.batch_gates_grad[at] = d_g0;
        args.batch_gates_grad[at + 2 * size] = d_g2;
        if (args.input_grad == nullptr) return;
        args.input_grad[of.row * 3 * size + i] = d_g0;
        args.input_grad[of.row * 3 * size + 2 * size + i] = d_g2;
      });
}

// Then, given the gradient of the reset states, computes the gradient of g1 and adds to the
// gradient of h'.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    GruResetBackwardRows(CudaStep step, GruBackwardStep<T> args, int threads_of_row) {
  const int64_t size = args.cell.size;
  ForEachColumn(
      step.count, size, threads_of_row, [&](int64_t j) { return StepRow(step, j); },
      [&](int64_t j, int64_t i, const StepRow& of) {
        const int64_t batch_row = step.first + j;
        const int64_t at = batch_row * 3 * size + size + i;
        const T reset = args.batch_gates[at];
        const T before = of.Before<T>(args.hidden, args.h0, size, i);
        const T gradient = args.reset_grad[j * size + i];
        const T d_g1 = ThroughActivation(args.cell.gate, reset, gradient * before);
        args.next[j * size + i] += gradient * reset;
        args.batch_gates_grad[at] = d_g1;
        if (args.input_grad != nullptr) args.input_grad[of.row * 3 * size + size + i] = d_g1;
        if (args.batch_before != nullptr) args.batch_before[batch_row * size + i] = before;
        if (args.batch_reset != nullptr) args.batch_reset[batch_row * size + i] = reset * before;
      });
}

// The products of steps with the weights, an input [H, 3H] that holds two matrices one after the
// other: [H, 2H] for u and r, then [H, H] for c.
template <typename T>
class CudaGruWeights {
 public:
  // Transposed: for the gradient.
  CudaGruWeights(int64_t most_rows, int64_t size, bool is_transposed)
      : size_(size),
        gates_(most_rows, Shape(2 * size, is_transposed)),
        candidate_(most_rows, Shape(size, is_transposed)) {}

  int64_t workspace_bytes() const {
    return std::max(gates_.workspace_bytes(), candidate_.workspace_bytes());
  }

  // Runs a step; `adds`: to what the gates hold.
  void Forward(const KernelContext& run, const CudaStep& step, const GruForwardStep<T>& args,
               const T* weight, bool adds, int workspace) const {
    const RowThreads threads(step.count, size_);
    const bool multiplies = args.before != nullptr;
    if (multiplies) gates_.Run(run, step.count, args.before, weight, adds, args.gates, workspace);
    GruResetRows<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(step, args, threads.of_row);
    CheckLaunch("reset gates of a step");
    if (multiplies) {
      candidate_.Run(run, step.count, args.reset, weight + 2 * size_ * size_, adds,
                     args.gates + 2 * size_, workspace);
    }
    GruForwardRows<T>
        <<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(step, args, threads.of_row);
    CheckLaunch("step of gated recurrent units");
  }

  // Runs the gradient of a step; if `wants_before`, to the gradient of h'.
  void Backward(const KernelContext& run, const CudaStep& step, const GruBackwardStep<T>& args,
                const T* weight, T* reset_grad, bool wants_before, int workspace) const {
    const RowThreads threads(step.count, size_);
    const T* gates = args.batch_gates_grad + step.first * 3 * size_;
    GruBackwardRows<T>
        <<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(step, args, threads.of_row);
    CheckLaunch("gradient of a step of gated recurrent units");
    candidate_.Run(run, step.count, gates + 2 * size_, weight + 2 * size_ * size_, false,
                   reset_grad, workspace);
    GruResetBackwardRows<T>
        <<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(step, args, threads.of_row);
    CheckLaunch("gradient of the reset gates of a step");
    if (wants_before) gates_.Run(run, step.count, gates, weight, true, args.next, workspace);
  }

 private:
  CudaProductShape Shape(int64_t columns, bool is_transposed) const {
    if (is_transposed) {
      return {.transpose_b = true,
              .n = size_,
              .k = columns,
              .lda = 3 * size_,
              .ldb = columns,
              .ldc = size_};
    }
    return {.n = columns, .k = size_, .lda = size_, .ldb = columns, .ldc = 3 * size_};
  }

  int64_t size_;
  CudaStepProduct<T> gates_;
  CudaStepProduct<T> candidate_;
};

// The gradient of the weights, from all rows: states before them and reset states, [rows, H], and
// the gradient of g, [rows, 3H].
template <typename T>
class CudaGruWeightGradient {
 public:
  CudaGruWeightGradient(int64_t rows, int64_t size)
      : size_(size),
        gates_(rows, size, size, 2 * size, 3 * size),
        candidate_(rows, size, size, size, 3 * size) {}

  int64_t workspace_bytes() const {
    return std::max(gates_.workspace_bytes(), candidate_.workspace_bytes());
  }

  void Run(const KernelContext& run, const T* before, const T* reset, const T* gates_grad,
           T* weight_grad, int workspace) const {
    gates_.Run(run, before, gates_grad, weight_grad, workspace);
    candidate_.Run(run, reset, gates_grad + 2 * size_, weight_grad + 2 * size_ * size_, workspace);
  }

 private:
  int64_t size_;
  CudaSumProduct<T> gates_;
  CudaSumProduct<T> candidate_;
};

}  // namespace skiff
