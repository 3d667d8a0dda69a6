// Reductions of a contiguous tensor along any of its dims, on CUDA: cuda_reduction.h explains them.
//
//   CudaReduction plan(dims);                            // in the factory or in Run
//   workspace = plan.WorkspaceBytes(sizeof(double))      // in the factory
//   LaunchReduction<CudaSum<float>>(plan, source, sink, workspace, stream)
//
// A source returns the element at a position of the tensor, and may compute it; a sink receives
// each result once. Both are structs, copied to the device:
//
//   T operator()(int64_t position) const;
//   void operator()(int64_t result, Partial value) const;
//
// A rule says how to combine:
//
//   Value, Partial                  types: of elements, and of what is kept of many
//   Partial Empty()                 the result of no elements
//   Value Combine(Value, Value)     of the few elements that a thread loads at once
//   Partial Combine(Partial, Partial)
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "operators/common/cuda_reduction.h"
#include "operators/common/cuda_vectors.cuh"

namespace skiff {

// Sums of floats are carried in float64 from one group of eight to the next.
template <typename T>
struct CudaSum {
  using Value = T;
  using Partial = std::conditional_t<std::is_floating_point_v<T>, double, T>;

  __device__ static Partial Empty() { return Partial{0}; }
  template <typename V>
  __device__ static V Combine(V a, V b) {
    return a + b;
  }
};

// A sink that rounds to T.
template <typename T>
struct StoreResult {
  T* results;

  template <typename Partial>
  __device__ void operator()(int64_t result, Partial value) const {
    results[result] = static_cast<T>(value);
  }
};

namespace cuda_reduction {

// The elements that a thread has in flight.
inline constexpr int kStep = 8;

// The source of the second launch.
template <typename Partial>
struct Parts {
  const Partial* partials;

  __device__ Partial operator()(int64_t position) const { return partials[position]; }
};

template <class Rule>
struct OfPartials : Rule {
  using Value = typename Rule::Partial;
};

// Returns what the lane keeps of elements [begin, end) of the reduced loops; `base` is the position
// of the first one.
template <class Rule, class Source>
__device__ typename Rule::Partial OfLane(const CudaReduction& plan, const Source& source,
                                         int64_t base, int64_t begin, int64_t end, int lane) {
  using Value = typename Rule::Value;
  using Partial = typename Rule::Partial;
  Partial partial = Rule::Empty();
  int64_t i = begin + lane;
  for (; i + (kStep - 1) * plan.lanes < end; i += kStep * plan.lanes) {
    Value values[kStep];
#pragma unroll
    for (int k = 0; k < kStep; ++k) {
      int64_t offset[1];
      plan.reduced.SetOffsets(i + k * plan.lanes, offset);
      values[k] = source(base + offset[0]);
    }
#pragma unroll
    for (int distance = kStep / 2; distance > 0; distance /= 2) {
#pragma unroll
      for (int k = 0; k < distance; ++k) {
        values[k] = Rule::Combine(values[k], values[k + distance]);
      }
    }
    partial = Rule::Combine(partial, static_cast<Partial>(values[0]));
  }
  for (; i < end; i += plan.lanes) {
    int64_t offset[1];
    plan.reduced.SetOffsets(i, offset);
    partial = Rule::Combine(partial, static_cast<Partial>(source(base + offset[0])));
  }
  return partial;
}

// Returns, on lane 0, what the lanes of its result keep together. Every thread must call it.
template <class Rule>
__device__ typename Rule::Partial OfLanes(const CudaReduction& plan, typename Rule::Partial partial,
                                          int lane) {
  using Partial = typename Rule::Partial;
  __shared__ Partial partials[CudaReduction::kThreads];
  const int next_lane = plan.lanes_are_neighbours ? 1 : plan.tile;
  for (int lanes = plan.lanes / 2; lanes > 0; lanes /= 2) {
    // The upper half gives, the lower half takes: nobody writes where another one reads.
    if (lane >= lanes && lane < 2 * lanes) partials[threadIdx.x] = partial;
    __syncthreads();
    if (lane < lanes) {
      partial = Rule::Combine(partial, partials[threadIdx.x + lanes * next_lane]);
    }
  }
  return partial;
}

// `partials`: where the results of parts go. With a single part, results go to the sink.
template <class Rule, class Source, class Sink>
__global__ void __launch_bounds__(CudaReduction::kThreads)
    Reduce(CudaReduction plan, Source source, Sink sink, typename Rule::Partial* partials) {
  const int thread = static_cast<int>(threadIdx.x);
  const int in_tile = plan.lanes_are_neighbours ? thread / plan.lanes : thread % plan.tile;
  const int lane = plan.lanes_are_neighbours ? thread % plan.lanes : thread / plan.tile;
  const int64_t tiles = (plan.result_count + plan.tile - 1) / plan.tile;
  for (int64_t item = blockIdx.x; item < tiles * plan.parts; item += gridDim.x) {
    const int64_t part = item / tiles;
    const int64_t result = (item - part * tiles) * plan.tile + in_tile;
    const bool is_result = result < plan.result_count;
    typename Rule::Partial partial = Rule::Empty();
    if (is_result) {
      int64_t base[1];
      plan.kept.SetOffsets(result, base);
      partial = OfLane<Rule>(plan, source, base[0], plan.reduced_count * part / plan.parts,
                             plan.reduced_count * (part + 1) / plan.parts, lane);
    }
    partial = OfLanes<Rule>(plan, partial, lane);
    if (is_result && lane == 0) {
      if (plan.parts > 1) {
        partials[part * plan.result_count + result] = partial;
      } else {
        sink(result, partial);
      }
    }
    __syncthreads();  // before the next item writes to shared memory
  }
}

inline int BlocksOf(const CudaReduction& plan) {
  constexpr int64_t kMaxBlocks = 8192;
  const int64_t items = (plan.result_count + plan.tile - 1) / plan.tile * plan.parts;
  return static_cast<int>(items < kMaxBlocks ? items : kMaxBlocks);
}

}  // namespace cuda_reduction

// Issues a reduction to the stream, a cudaStream_t. `workspace`: of plan.WorkspaceBytes. Returns
// what has failed, nullptr if nothing has.
template <class Rule, class Source, class Sink>
const char* LaunchReduction(const CudaReduction& plan, const Source& source, const Sink& sink,
                            void* workspace, void* stream) {
  using Partial = typename Rule::Partial;
  if (plan.result_count == 0) return nullptr;
  constexpr int kThreads = CudaReduction::kThreads;
  const auto of_device = static_cast<cudaStream_t>(stream);
  auto* partials = static_cast<Partial*>(workspace);
  cuda_reduction::Reduce<Rule, Source, Sink>
      <<<cuda_reduction::BlocksOf(plan), kThreads, 0, of_device>>>(plan, source, sink, partials);
  if (plan.parts > 1) {
    const CudaReduction of_parts = plan.OfParts();
    using Parts = cuda_reduction::Parts<Partial>;
    Partial* none = nullptr;
    cuda_reduction::Reduce<cuda_reduction::OfPartials<Rule>, Parts, Sink>
        <<<cuda_reduction::BlocksOf(of_parts), kThreads, 0, of_device>>>(of_parts, Parts{partials},
                                                                         sink, none);
  }
  return LaunchFailure();
}

}  // namespace skiff
