// CUDA kernels of linear_chain_crf and its gradient; linear_chain_crf.cc has the formulas. A block
// takes a sequence, row by row, and its threads the tags. They compute in float64.
#include <cmath>
#include <memory>
#include <string>

#include "framework/base/element_count.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_combine.cuh"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/sequence/kernels/crf_chain.h"
#include "operators/sequence/kernels/cuda_tag_sequences.cuh"

namespace skiff {
namespace {

struct LargerLogarithm {
  __device__ double operator()(double a, double b) const { return a < b ? b : a; }
};

// LogSumExp on all threads of a block, each of which makes the values of its own tags.
template <class ValueOf>
__device__ double LogSumOfTags(int64_t tags, const ValueOf& value_of) {
  double largest = -INFINITY;
  ForEachTag(tags, [&](int64_t i) { largest = LargerLogarithm()(largest, value_of(i)); });
  largest = CombineBlock(largest, LargerLogarithm(), static_cast<int>(blockDim.x));
  if (largest == -INFINITY) largest = 0;
  double sum = 0;
  ForEachTag(tags, [&](int64_t i) { sum += std::exp(value_of(i) - largest); });
  return largest + std::log(CombineBlock(sum, JoinBySum{}, static_cast<int>(blockDim.x)));
}

// The arguments of a run.
template <typename T>
struct CrfOnDevice {
  __device__ double Start(int64_t tag) const { return transition[tag]; }
  __device__ double Stop(int64_t tag) const { return transition[tags + tag]; }
  __device__ double Step(int64_t from, int64_t to) const {
    return transition[(from + 2) * tags + to];
  }
  // Returns the label of a row, or tag 0 for one that is refused, which is noted behind the
  // sequences.
  __device__ int64_t LabelOf(int64_t row, bool notes_fault) const {
    const int64_t label = labels[row];
    if (label >= 0 && label < tags) return label;
    if (notes_fault) NoteFault(sequences.fault, sequences.count + row, label);
    return 0;
  }

  // Makes the normalized logarithms of a row of the sequence, whose row before has those in
  // `before`; nullptr: it is the first row. Returns the logarithm that normalizes them.
  __device__ double Forward(int64_t row, const double* before, double* now) const {
    ForEachTag(tags, [&](int64_t i) {
      const double log = before == nullptr ? Start(i) : LogSumExp(tags, [&](int64_t from) {
        return before[from] + Step(from, i);
      });
      now[i] = log + double{emission[row * tags + i]};
    });
    const double norm = LogSumOfTags(tags, [&](int64_t i) { return now[i]; });
    ForEachTag(tags, [&](int64_t i) { now[i] -= norm; });
    __syncthreads();
    return norm;
  }

  CudaTagSequences sequences;
  const T* emission;
  const T* transition;
  const int64_t* labels;
  int64_t tags;
};

// `rows` has two rows of tags for each block. alpha may be nullptr.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    CrfLosses(CrfOnDevice<T> crf, double* rows, T* alpha, T* losses) {
  const int64_t tags = crf.tags;
  const bool is_first = threadIdx.x == 0;
  double* const two = rows + int64_t{blockIdx.x} * 2 * tags;
  for (int64_t i = blockIdx.x; i < crf.sequences.count; i += gridDim.x) {
    const RowRange range = crf.sequences.At(i, is_first);
    double loss = 0;
    int64_t label = 0;
    for (int64_t k = 0; k < range.count(); ++k) {
      const int64_t row = range.begin + k;
      double* const now = two + k % 2 * tags;
      loss += crf.Forward(row, k == 0 ? nullptr : two + (k - 1) % 2 * tags, now);
      if (alpha != nullptr) {
        ForEachTag(tags, [&](int64_t tag) {
          alpha[row * tags + tag] = static_cast<T>(std::exp(now[tag]));
        });
      }
      const int64_t before = label;
      label = crf.LabelOf(row, is_first);
      loss -= double{crf.emission[row * tags + label]};
      loss -= k == 0 ? crf.Start(label) : crf.Step(before, label);
    }
    if (range.count() > 0) {
      const double* const last = two + (range.count() - 1) % 2 * tags;
      loss += LogSumOfTags(tags, [&](int64_t tag) { return last[tag] + crf.Stop(tag); });
      loss -= crf.Stop(label);
    }
    if (is_first) losses[i] = static_cast<T>(loss);
    __syncthreads();  // before the next sequence overwrites the rows
  }
}

// exp(x - the maximum of its row).
template <typename T>
struct EmissionPowers {
  __device__ void operator()(int64_t row) const {
    const T* const from = emission + row * tags;
    T largest = from[0];
    for (int64_t i = 1; i < tags; ++i) largest = largest < from[i] ? from[i] : largest;
    for (int64_t i = 0; i < tags; ++i) to[row * tags + i] = std::exp(from[i] - largest);
  }

  const T* emission;
  int64_t tags;
  T* to;
};

template <typename T>
struct TransitionPowers {
  __device__ void operator()(int64_t i) const { to[i] = std::exp(transition[i]); }

  const T* transition;
  T* to;
};

// What a block needs for gradients: float64 numbers.
struct CrfGradientNumbers {
  // Of each block: its part of Transition@GRAD, and three rows of tags.
  static constexpr int64_t NumbersOfBlock(int64_t tags) { return (tags + 2 + 3) * tags; }

  double* blocks;
  double* forward;  // the logarithms of each row of Emission
};

// The gradients of a sequence, by one block.
template <typename T>
struct CrfGradientOfSequence {
  __device__ void Run(const RowRange& range, double scale) {
    double* const forward = all_forward + range.begin * crf.tags;
    for (int64_t k = 0; k < range.count(); ++k) {
      crf.Forward(range.begin + k, k == 0 ? nullptr : forward + (k - 1) * crf.tags,
                  forward + k * crf.tags);
    }
    int64_t label = LabelOf(range.end - 1);
    LastRow(forward + (range.count() - 1) * crf.tags);
    AddRow(label, scale, weights + crf.tags);
    for (int64_t k = range.count() - 1; k >= 0; --k) {
      WriteRow(range.begin + k, label, scale);
      if (k == 0) break;
      const int64_t before = LabelOf(range.begin + k - 1);
      Spread(forward + (k - 1) * crf.tags, before, label, scale);
      label = before;
    }
    AddRow(label, scale, weights);
    __syncthreads();  // before the next sequence overwrites the rows
  }

  __device__ int64_t LabelOf(int64_t row) const { return crf.LabelOf(row, threadIdx.x == 0); }

  __device__ void LastRow(const double* last) {
    const auto score = [&](int64_t i) { return last[i] + crf.Stop(i); };
    const double norm = LogSumOfTags(crf.tags, score);
    ForEachTag(crf.tags, [&](int64_t i) { now[i] = std::exp(score(i) - norm); });
  }

  __device__ void AddRow(int64_t label, double scale, double* to) const {
    ForEachTag(crf.tags, [&](int64_t i) { to[i] += scale * (now[i] - (i == label ? 1 : 0)); });
  }

  __device__ void WriteRow(int64_t row, int64_t label, double scale) const {
    if (emission_gradient == nullptr) return;
    ForEachTag(crf.tags, [&](int64_t i) {
      emission_gradient[row * crf.tags + i] =
          static_cast<T>(scale * (now[i] - (i == label ? 1 : 0)));
    });
  }

  // From the probabilities of the tags of a row to those of the row before it.
  __device__ void Spread(const double* before, int64_t label_before, int64_t label, double scale) {
    const int64_t tags = crf.tags;
    ForEachTag(tags, [&](int64_t to) {
      logs[to] = LogSumExp(tags, [&](int64_t from) { return before[from] + crf.Step(from, to); });
    });
    __syncthreads();
    ForEachTag(tags, [&](int64_t from) {
      double* const steps = weights + (from + 2) * tags;
      double sum = 0;
      for (int64_t to = 0; to < tags; ++to) {
        if (now[to] == 0) continue;
        const double share = now[to] * std::exp(before[from] + crf.Step(from, to) - logs[to]);
        sum += share;
        steps[to] += scale * share;
      }
      if (from == label_before) steps[label] -= scale;
      earlier[from] = sum;
    });
    __syncthreads();
    double* const other = now;
    now = earlier;
    earlier = other;
  }

  CrfOnDevice<T> crf;
  double* all_forward;
  double* weights;
  double* now;
  double* earlier;
  double* logs;
  T* emission_gradient;  // may be nullptr
};

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    CrfGradients(CrfOnDevice<T> crf, CrfGradientNumbers numbers, const T* gradient,
                 T* emission_gradient) {
  const int64_t tags = crf.tags;
  double* const weights =
      numbers.blocks + int64_t{blockIdx.x} * CrfGradientNumbers::NumbersOfBlock(tags);
  double* const rows = weights + (tags + 2) * tags;
  CrfGradientOfSequence<T> sequence{crf,         numbers.forward, weights,          rows,
                                    rows + tags, rows + 2 * tags, emission_gradient};
  for (int64_t i = blockIdx.x; i < crf.sequences.count; i += gridDim.x) {
    const RowRange range = crf.sequences.At(i, threadIdx.x == 0);
    if (range.count() > 0) sequence.Run(range, gradient[i]);
  }
}

// Sums the blocks' parts of Transition@GRAD, in order.
template <typename T>
struct SumCrfBlocks {
  __device__ void operator()(int64_t i) const {
    double sum = 0;
    for (int64_t block = 0; block < blocks; ++block) sum += numbers[block * of_block + i];
    to[i] = static_cast<T>(sum);
  }

  const double* numbers;
  int64_t blocks;
  int64_t of_block;
  T* to;
};

template <typename T>
class CudaCrfKernel : public Kernel {
 public:
  bool AcceptsFewerRows() const override { return true; }

  void ThrowFault(const DataFault& fault) const override {
    const int64_t row = fault.position - sequences_.count();
    if (row >= 0) ThrowTag(op_, "Label", row, fault.value, tags_);
    ThrowTagLength(op_, fault.position, fault.value, sequences_.padded());
  }

 protected:
  explicit CudaCrfKernel(const PrepareContext& context)
      : op_(context.op().type),
        tags_(context.Input("Transition").shape[1]),
        emission_(context, "Emission"),
        transition_(context, "Transition"),
        label_(context, "Label"),
        sequences_(context, "Label", "Length") {}

  static int64_t MostSequences(const OpContext& context) {
    return TagSequenceCount(context, "Label", "Length");
  }
  static int Request(PrepareContext& context, int64_t numbers) {
    return context.RequestWorkspace(MultiplyCounts(numbers, sizeof(double)));
  }

  CrfOnDevice<T> Send(const KernelContext& run) {
    return {sequences_.Send(run), emission_(run), transition_(run), label_(run), tags_};
  }

  std::string op_;
  int64_t tags_;
  In<T> emission_;
  In<T> transition_;

 private:
  In<int64_t> label_;
  CudaTagSequenceInput sequences_;
};

template <typename T>
class CudaLinearChainCrf final : public CudaCrfKernel<T> {
 public:
  explicit CudaLinearChainCrf(PrepareContext& context)
      : CudaCrfKernel<T>(context),
        alpha_(context, "Alpha"),
        emission_powers_(context, "EmissionExps"),
        transition_powers_(context, "TransitionExps"),
        loss_(context, "LogLikelihood"),
        rows_(this->Request(
            context, MultiplyCounts(CudaBlocks(this->MostSequences(context)), 2 * this->tags_))) {}

  void Run(const KernelContext& run) override {
    const CrfOnDevice<T> crf = this->Send(run);
    WritePowers(run, crf);
    if (alpha_.is_there()) FillBytesOnDevice(run, alpha_(run), 0, alpha_.tensor(run).byte_count());
    if (crf.sequences.count == 0) return;
    CrfLosses<T><<<CudaBlocks(crf.sequences.count), ThreadsOfTags(crf.tags), 0, StreamOf(run)>>>(
        crf, static_cast<double*>(run.workspace(rows_)), alpha_(run), loss_(run));
    CheckLaunch("linear_chain_crf");
  }

 private:
  void WritePowers(const KernelContext& run, const CrfOnDevice<T>& crf) const {
    if (emission_powers_.is_there()) {
      ForEachOnDevice(run, "linear_chain_crf: powers", emission_powers_.count(run) / crf.tags,
                      EmissionPowers<T>{crf.emission, crf.tags, emission_powers_(run)});
    }
    if (!transition_powers_.is_there()) return;
    ForEachOnDevice(run, "linear_chain_crf: powers", transition_powers_.count(run),
                    TransitionPowers<T>{crf.transition, transition_powers_(run)});
  }

  Out<T> alpha_;
  Out<T> emission_powers_;
  Out<T> transition_powers_;
  Out<T> loss_;
  int rows_;
};

template <typename T>
class CudaLinearChainCrfGrad final : public CudaCrfKernel<T> {
 public:
  explicit CudaLinearChainCrfGrad(PrepareContext& context)
      : CudaCrfKernel<T>(context),
        gradient_(context, "LogLikelihood@GRAD"),
        emission_gradient_(context, "Emission@GRAD"),
        transition_gradient_(context, "Transition@GRAD"),
        most_blocks_(MostBlocks(this->tags_)),
        blocks_(this->Request(
            context, MultiplyCounts(Blocks(this->MostSequences(context)), NumbersOfBlock()))),
        forward_(this->Request(context, context.Input("Emission").shape.element_count())) {}

  void Run(const KernelContext& run) override {
    const CrfOnDevice<T> crf = this->Send(run);
    if (emission_gradient_.is_there()) {
      FillBytesOnDevice(run, emission_gradient_(run), 0,
                        emission_gradient_.tensor(run).byte_count());
    }
    const int64_t blocks = Blocks(crf.sequences.count);
    const CrfGradientNumbers numbers{static_cast<double*>(run.workspace(blocks_)),
                                     static_cast<double*>(run.workspace(forward_))};
    if (blocks > 0) Launch(run, crf, blocks, numbers);
    if (!transition_gradient_.is_there()) return;
    ForEachOnDevice(
        run, "linear_chain_crf_grad: sums", transition_gradient_.count(run),
        SumCrfBlocks<T>{numbers.blocks, blocks, NumbersOfBlock(), transition_gradient_(run)});
  }

 private:
  // Each block has a part of Transition@GRAD.
  static int64_t MostBlocks(int64_t tags) {
    constexpr int64_t kMost = 256;
    constexpr int64_t kMostNumbers = int64_t{1} << 23;
    const int64_t fitting = kMostNumbers / (CrfGradientNumbers::NumbersOfBlock(tags) + 1);
    return fitting < 1 ? 1 : fitting < kMost ? fitting : kMost;
  }
  int64_t Blocks(int64_t sequences) const { return CudaBlocks(sequences, most_blocks_); }
  int64_t NumbersOfBlock() const { return CrfGradientNumbers::NumbersOfBlock(this->tags_); }

  void Launch(const KernelContext& run, const CrfOnDevice<T>& crf, int64_t blocks,
              const CrfGradientNumbers& numbers) const {
    FillBytesOnDevice(run, numbers.blocks, 0, blocks * NumbersOfBlock() * int64_t{sizeof(double)});
    CrfGradients<T><<<static_cast<int>(blocks), ThreadsOfTags(crf.tags), 0, StreamOf(run)>>>(
        crf, numbers, gradient_(run), emission_gradient_(run));
    CheckLaunch("linear_chain_crf_grad");
  }

  In<T> gradient_;
  Out<T> emission_gradient_;
  Out<T> transition_gradient_;
  int64_t most_blocks_;
  int blocks_;
  int forward_;
};

template <typename T>
void AddLinearChainCrfKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "linear_chain_crf", PrepareKernel<CudaLinearChainCrf<T>>);
  AddCudaKernel<T>(registry, "linear_chain_crf_grad", PrepareKernel<CudaLinearChainCrfGrad<T>>);
}

}  // namespace

void RegisterLinearChainCrfCuda(OpRegistry& registry) {
  AddLinearChainCrfKernels<float>(registry);
  AddLinearChainCrfKernels<double>(registry);
}

}  // namespace skiff
