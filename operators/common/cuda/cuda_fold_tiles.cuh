// Reductions over axes on CUDA: sums and their like, of values computed from each element. Includes
// little, so that small .cu files compile fast; cuda_fold.cuh has more.
//
// A rule says what:
//
//   struct Rule {
//     using Carry = …;                          // a partial result: trivial
//     static Carry Identity();                  // of no elements
//     static Carry Join(Carry a, Carry b);
//     void Add(int64_t place, int64_t output, int64_t i, Carry* carry) const;
//     void Finish(int64_t output, Carry total) const;
//   };
//
// all for the device. Add adds the element at `place` of the tensor, the i-th element that makes up
// this output. It is called once for each element, so it may also write results by element. Finish
// is called once for each output, by one thread. The view says what is reduced (cuda_fold_view.h).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "operators/common/cuda/cuda_fold_view.h"
#include "operators/common/cuda/cuda_launch_size.h"
#include "operators/common/cuda/cuda_vectors.cuh"

namespace skiff {

template <class Rule>
__global__ void __launch_bounds__(kCudaThreads)
    FoldTiles(Rule rule, CudaFoldView view, CudaFoldCut cut, typename Rule::Carry* parts) {
  using Carry = typename Rule::Carry;
  __shared__ Carry carries[kCudaThreads];
  const int slots = static_cast<int>(cut.slots);
  const int threads = static_cast<int>(cut.threads);
  const int index = static_cast<int>(threadIdx.x);
  const int slot = view.neighbours_reduce ? index / threads : index % slots;
  const int thread = view.neighbours_reduce ? index % threads : index / slots;
  // Neighbouring threads have neighbouring carries, in other banks.
  Carry* mine = carries + index;
  const int next_thread = view.neighbours_reduce ? 1 : slots;
  for (int64_t work = blockIdx.x; work < cut.tiles * cut.parts; work += gridDim.x) {
    const CudaDivision at = Divide(work, cut.tiles);
    const int64_t output = at.rest * slots + slot;
    Carry carry = Rule::Identity();
    if (output < view.outputs && view.elements > 0) {
      const int64_t begin = at.quotient * cut.part;
      const int64_t end = begin + cut.part < view.elements ? begin + cut.part : view.elements;
      const int64_t first = view.kept.PlaceOf(output);
      const int64_t stride = view.reduced.strides[0];
      if (view.reduced.count == 1) {
#pragma unroll 4
        for (int64_t i = begin + thread; i < end; i += threads) {
          rule.Add(first + i * stride, output, i, &carry);
        }
      } else {
        const int64_t run = view.reduced.sizes[0];
        CudaDivision in_run = Divide(begin + thread, run);
        for (int64_t i = begin + thread; i < end;) {
          const int64_t place = first + view.reduced.PlaceOf(in_run.quotient, 1);
          // Without a division, so that several loads are under way.
          const int64_t last = in_run.rest + (end - i) < run ? in_run.rest + (end - i) : run;
#pragma unroll 4
          for (; in_run.rest < last; in_run.rest += threads, i += threads) {
            rule.Add(place + in_run.rest * stride, output, i, &carry);
          }
          const CudaDivision next = Divide(in_run.rest, run);
          in_run = {in_run.quotient + next.quotient, next.rest};
        }
      }
    }
    __syncthreads();  // until the last tile's carries have been read
    *mine = carry;
    for (int distance = threads / 2; distance > 0; distance /= 2) {
      __syncthreads();
      if (thread < distance) *mine = carry = Rule::Join(carry, mine[distance * next_thread]);
    }
    if (thread != 0 || output >= view.outputs) continue;
    if (parts == nullptr) {
      rule.Finish(output, carry);
    } else {
      parts[at.quotient * view.outputs + output] = carry;
    }
  }
}

// Joins the parts, a matrix with a row for each part.
template <class Rule>
struct CudaPartsRule {
  using Carry = typename Rule::Carry;
  static __device__ Carry Identity() { return Rule::Identity(); }
  static __device__ Carry Join(const Carry& a, const Carry& b) { return Rule::Join(a, b); }
  __device__ void Add(int64_t place, int64_t, int64_t, Carry* carry) const {
    *carry = Rule::Join(*carry, parts[place]);
  }
  __device__ void Finish(int64_t output, const Carry& total) const { rule.Finish(output, total); }

  Rule rule;
  const Carry* parts;
};

template <class Rule>
void LaunchTiles(const CudaFoldView& view, const CudaFoldCut& cut, const Rule& rule,
                 typename Rule::Carry* parts, void* stream) {
  const int blocks = CudaBlocks(cut.tiles * cut.parts, kMaxElementBlocks);
  FoldTiles<<<blocks, kCudaThreads, 0, static_cast<cudaStream_t>(stream)>>>(rule, view, cut, parts);
}

// Issues a reduction to the stream, a cudaStream_t. `workspace`: of FoldWorkspaceBytes. Returns
// what has failed, nullptr if nothing has.
template <class Rule>
const char* LaunchFold(const CudaFoldView& view, const Rule& rule, void* workspace, void* stream) {
  using Carry = typename Rule::Carry;
  if (view.outputs == 0) return nullptr;
  const CudaFoldCut cut(view);
  auto* parts = cut.parts == 1 ? nullptr : static_cast<Carry*>(workspace);
  LaunchTiles(view, cut, rule, parts, stream);
  if (parts != nullptr) {
    const CudaFoldView matrix(cut.parts, view.outputs);
    const CudaFoldCut whole(matrix, /*may_part=*/false);
    Carry* const none = nullptr;
    LaunchTiles(matrix, whole, CudaPartsRule<Rule>{rule, parts}, none, stream);
  }
  return LaunchFailure();
}

// Of the workspace of LaunchFold for tensors of at most `elements` elements.
template <class Rule>
int64_t FoldWorkspaceBytes(int64_t elements) {
  return CudaFoldCut::MostResults(elements) * static_cast<int64_t>(sizeof(typename Rule::Carry));
}

}  // namespace skiff
