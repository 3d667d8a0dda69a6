// CUDA kernels of warpctc and its gradient; warpctc.cc has the formulas.
//
// A block takes a sequence: its warps the softmax of the steps, then its threads the states of one
// step after the other, and at last the classes of all steps.
#include <cmath>
#include <limits>
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_combine.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/sequence/kernels/ctc_batch.h"
#include "operators/sequence/kernels/cuda_sequences.cuh"

namespace skiff {
namespace {

struct CtcMaximum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

// Calls body(i) for all i < count, each on one thread of the block.
template <class Body>
__device__ void ForEachInCtcBlock(int64_t count, const Body& body) {
  for (int64_t i = threadIdx.x; i < count; i += kCudaThreads) body(i);
}

// The probabilities of the classes of a step, by a warp.
template <typename T>
__device__ void SetCtcProbabilities(const CtcLattice<T>& lattice, int64_t t) {
  const int64_t lane = threadIdx.x % kCudaWarp;
  const T* const from = lattice.LogitsAt(t);
  T* const to = lattice.GradientAt(t);
  T most = -std::numeric_limits<T>::infinity();
  for (int64_t c = lane; c < lattice.classes; c += kCudaWarp) most = CtcMaximum()(from[c], most);
  most = CombineWarp(most, CtcMaximum());
  double sum = 0;
  for (int64_t c = lane; c < lattice.classes; c += kCudaWarp)
    sum += static_cast<double>(to[c] = std::exp(from[c] - most));
  sum = CombineWarp(sum, JoinBySum());
  for (int64_t c = lane; c < lattice.classes; c += kCudaWarp) to[c] /= static_cast<T>(sum);
  if (lane == 0) lattice.log_sums[t] = static_cast<double>(most) + std::log(sum);
}

// Writes `forward` and returns the logarithm of the sum over all paths.
template <typename T>
__device__ double GoCtcForward(const CtcLattice<T>& lattice) {
  for (int64_t t = threadIdx.x / kCudaWarp; t < lattice.steps; t += kCudaThreads / kCudaWarp)
    SetCtcProbabilities(lattice, t);
  __syncthreads();
  for (int64_t t = 0; t < lattice.steps; ++t) {
    ForEachInCtcBlock(lattice.states(), [&](int64_t state) {
      lattice.ForwardAt(t)[state] = lattice.Forward(t, state);
    });
    __syncthreads();
  }
  return lattice.LogOfAll();
}

// Makes shares of the states of `forward`, and subtracts them.
template <typename T>
__device__ void GoCtcBackward(const CtcLattice<T>& lattice, double log_of_all) {
  __syncthreads();  // until all have read log_of_all
  for (int64_t t = lattice.steps - 1; t >= 0; --t) {
    ForEachInCtcBlock(lattice.states(), [&](int64_t state) {
      const double backward = lattice.Backward(t, state);
      lattice.BackwardAt(t)[state] = backward;
      double& forward = lattice.ForwardAt(t)[state];
      forward = std::exp(forward + backward - log_of_all);
    });
    __syncthreads();
  }
  const int64_t places = lattice.label_count + 1;
  ForEachInCtcBlock(lattice.steps * places,
                    [&](int64_t i) { lattice.SubtractShare(i / places, i % places - 1); });
}

template <typename T>
__device__ void ZeroCtcGradient(const CtcLattice<T>& lattice, int64_t begin, int64_t end) {
  ForEachInCtcBlock((end - begin) * lattice.classes, [&](int64_t i) {
    lattice.GradientAt(begin + i / lattice.classes)[i % lattice.classes] = T{0};
  });
}

// Of ragged sequences.
struct CtcOffsets {
  CudaOffsets logits;
  CudaOffsets labels;
};

template <typename T>
__device__ CtcLattice<T> CtcLatticeOf(const CtcBatch<T>& batch, const CtcOffsets& offsets,
                                      int64_t i, uint64_t* fault) {
  if (batch.is_ragged) {
    return batch.LatticeOf(i, {offsets.logits.Begin(i), offsets.logits.End(i)},
                           {offsets.labels.Begin(i), offsets.labels.End(i)});
  }
  const auto refuse = [&](int64_t position, int64_t length) {
    if (threadIdx.x == 0) NoteFault(fault, position, length);
  };
  return batch.LatticeOf(i, batch.PaddedLogits(i, refuse), batch.PaddedLabels(i, refuse));
}

template <typename T>
__device__ void SetCtcPlaces(const CtcLattice<T>& lattice, int64_t first_position,
                             uint64_t* fault) {
  ForEachInCtcBlock(lattice.label_count, [&](int64_t i) {
    const int64_t label = lattice.labels[i];
    if (!lattice.IsLabel(label)) NoteFault(fault, first_position + i, label);
    lattice.places[i] = lattice.PlaceOf(i);
  });
  __syncthreads();
}

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    CtcOfSequences(CtcBatch<T> batch, CtcOffsets offsets, uint64_t* fault) {
  for (int64_t i = blockIdx.x; i < batch.sequences; i += gridDim.x) {
    const CtcLattice<T> lattice = CtcLatticeOf(batch, offsets, i, fault);
    SetCtcPlaces(lattice, batch.PositionOf(lattice.places - batch.places), fault);
    ZeroCtcGradient(lattice, lattice.steps, batch.steps);
    const bool has_paths = lattice.HasPaths();
    const double log_of_all = has_paths ? GoCtcForward(lattice) : 0;
    if (threadIdx.x == 0) batch.losses[i] = static_cast<T>(0 - log_of_all);
    if (has_paths && log_of_all != kLogOfZero) {
      GoCtcBackward(lattice, log_of_all);
    } else {
      ZeroCtcGradient(lattice, 0, lattice.steps);
    }
  }
}

template <typename T>
class CudaWarpctc final : public Kernel {
 public:
  explicit CudaWarpctc(PrepareContext& context) : arguments_(context) {
    if (!arguments_.is_ragged()) return;
    logits_level_ = SendLevel(context, "Logits");
    label_level_ = SendLevel(context, "Label");
  }
  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    batch_ = arguments_.Batch(run);
    if (batch_.sequences == 0) return;
    CtcOffsets offsets{};
    if (batch_.is_ragged) {
      offsets = {logits_level_->Send(run, arguments_.logits(run)),
                 label_level_->Send(run, arguments_.label(run))};
    }
    CtcOfSequences<T><<<CudaBlocks(batch_.sequences), kCudaThreads, 0, StreamOf(run)>>>(
        batch_, offsets, run.fault);
    CheckLaunch("warpctc");
  }

  [[noreturn]] void ThrowFault(const DataFault& fault) const override {
    ThrowCtcFault(batch_, fault.position, fault.value);
  }

 private:
  CtcArguments<T> arguments_;
  std::shared_ptr<CudaLevel> logits_level_;
  std::shared_ptr<CudaLevel> label_level_;
  CtcBatch<T> batch_{};  // of the last run
};

// The elements of Logits@GRAD.
template <typename T>
struct CtcGradient {
  __device__ void operator()(int64_t i) const {
    const int64_t row = i / classes;
    const int64_t sequence = is_ragged ? ragged.SequenceOf(row) : row % sequences;
    const int64_t from_row =
        is_ragged ? (row - ragged.Begin(sequence)) * sequences + sequence : row;
    T factor = loss_gradient[sequence];
    if (norm_by_times) {
      const int64_t steps =
          is_ragged ? ragged.End(sequence) - ragged.Begin(sequence) : lengths[sequence];
      if (steps > 0) factor /= static_cast<T>(steps);
    }
    to[i] = saved[from_row * classes + i % classes] * factor;
  }

  const T* saved;
  const T* loss_gradient;
  const int64_t* lengths;
  CudaOffsets ragged;
  bool is_ragged;
  bool norm_by_times;
  int64_t sequences;
  int64_t classes;
  T* to;
};

template <typename T>
std::unique_ptr<Kernel> PrepareWarpctcGrad(PrepareContext& context) {
  const In<int64_t> length(context, "LogitsLength");
  std::shared_ptr<CudaLevel> level;
  if (!length.is_there()) level = SendLevel(context, "Logits");
  return MakeRowsKernel([=, norm_by_times = context.Attr<bool>("norm_by_times"),
                         logits = In<>(context, "Logits"), saved = In<T>(context, "WarpCTCGrad"),
                         loss_gradient = In<T>(context, "Loss@GRAD"),
                         to = Out<T>(context, "Logits@GRAD")](const KernelContext& run) {
    if (to.count(run) == 0) return;
    const Shape& batch = saved.shape(run);
    const bool is_ragged = level != nullptr;
    ForEachOnDevice(run, "warpctc_grad", to.count(run),
                    CtcGradient<T>{saved(run), loss_gradient(run), length(run),
                                   is_ragged ? level->Send(run, logits.tensor(run)) : CudaOffsets{},
                                   is_ragged, norm_by_times, batch[1], batch[2], to(run)});
  });
}

}  // namespace

void RegisterWarpctcCuda(OpRegistry& registry) {
  AddCudaKernels<float, double>(
      registry, "warpctc", [=]<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<CudaWarpctc<T>>(context);
      });
  AddCudaKernels<float, double>(registry, "warpctc_grad", [=]<typename T>(PrepareContext& context) {
    return PrepareWarpctcGrad<T>(context);
  });
}

}  // namespace skiff
