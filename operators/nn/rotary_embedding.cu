// CUDA kernels of rotary_embedding and its gradient; rotary_embedding.cc has the formulas. A thread
// turns one pair of columns of a token in all heads, so that it computes one sine and cosine.
#include <cmath>
#include <memory>

#include "framework/op/arguments.h"
#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_for_each.cuh"
#include "operators/nn/attention/rotary_columns.h"

namespace skiff {
namespace {

// y may be x.
template <typename T>
struct TurnRotaryPairs {
  using Wide = WideType<T>;

  __device__ void operator()(int64_t i) const {
    const CudaDivision at = Divide(i, columns.pairs);
    const int64_t row = at.quotient;
    const int64_t position = positions == nullptr ? Divide(row, tokens).rest : positions[row];
    const double angle =
        static_cast<double>(position) * std::exp(static_cast<double>(at.rest) * columns.log_step);
    const Wide cosine = static_cast<Wide>(std::cos(angle));
    const Wide sine = static_cast<Wide>(direction * std::sin(angle));
    const int64_t begin = row * columns.heads * 2 * columns.pairs;
    for (int64_t head = 0; head < columns.heads; ++head) {
      const RotaryPair pair = columns.PairAt(head, at.rest);
      const Wide first = Widened(x[begin + pair.first]);
      const Wide second = Widened(x[begin + pair.second]);
      y[begin + pair.first] = Rounded<T>(first * cosine - second * sine);
      y[begin + pair.second] = Rounded<T>(second * cosine + first * sine);
    }
  }

  RotaryColumns columns;
  int64_t tokens;
  double direction;
  const int64_t* positions;  // may be nullptr
  const T* x;
  T* y;
};

template <typename T>
std::unique_ptr<Kernel> PrepareRotaryEmbedding(PrepareContext& context, const char* from_slot,
                                               const char* to_slot, double direction) {
  return MakeRowsKernel([=, columns = RotaryColumns(context, from_slot),
                         x = In<T>(context, from_slot),
                         positions = In<int64_t>(context, "Positions"),
                         y = Out<T>(context, to_slot)](const KernelContext& run) {
    const Shape& shape = x.shape(run);
    ForEachOnDevice(run, "rotary_embedding", shape[0] * shape[1] * columns.pairs,
                    TurnRotaryPairs<T>{.columns = columns,
                                       .tokens = shape[1],
                                       .direction = direction,
                                       .positions = positions(run),
                                       .x = x(run),
                                       .y = y(run)});
  });
}

}  // namespace

void RegisterRotaryEmbeddingCuda(OpRegistry& registry) {
  AddCudaFloatKernels(registry, "rotary_embedding", [=]<typename T>(PrepareContext& context) {
    return PrepareRotaryEmbedding<T>(context, "X", "Out", 1);
  });
  AddCudaFloatKernels(registry, "rotary_embedding_grad", [=]<typename T>(PrepareContext& context) {
    return PrepareRotaryEmbedding<T>(context, "Out@GRAD", "X@GRAD", -1);
  });
}

}  // namespace skiff
