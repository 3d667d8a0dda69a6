// Reductions over axes on CUDA: sums and their like, of whatever is computed from each element.
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
// all for the device. Add adds the element at `place` of the tensor, the i-th one that makes up
// this output. It is called once for each element, so it may also write results by element. Finish
// is called once for each output, by one thread.
//
// A block takes a tile: some outputs (slots), each shared by some threads, neighbours of which read
// neighbouring elements. If there are few tiles, each output is cut into parts, which another
// launch joins. All of that depends on sizes alone, and so does the order of sums.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "operators/common/cuda_for_each.cuh"
#include "operators/common/cuda_launch.h"
#include "operators/common/reduce.h"

namespace skiff {

// Dims of nested loops, the innermost first: at least one.
struct CudaDims {
  int count = 1;
  int64_t sizes[Shape::kMaxRank] = {1};
  int64_t strides[Shape::kMaxRank] = {0};

  // `merges`: the dim continues the outermost one in memory.
  void AddOutside(int64_t size, int64_t stride, bool merges) {
    if (count == 1 && sizes[0] == 1) {
      sizes[0] = size;
      strides[0] = stride;
    } else if (merges) {
      sizes[count - 1] *= size;
    } else {
      sizes[count] = size;
      strides[count] = stride;
      ++count;
    }
  }

  // Returns the place of an index whose dims before `first` are 0 and left out.
  __device__ int64_t PlaceOf(int64_t index, int first = 0) const {
    int64_t place = 0;
    for (int i = first; i < count - 1; ++i) {
      const CudaDivision at = Divide(index, sizes[i]);
      place += at.rest * strides[i];
      index = at.quotient;
    }
    return first < count ? place + index * strides[count - 1] : place;
  }
};

// A tensor and the axes that are reduced. Neighbouring axes of one kind are merged.
struct CudaFoldView {
  // The shape must be known.
  CudaFoldView(const Shape& shape, const AxisFlags& is_reduced) {
    int64_t stride = 1;
    bool previous_is_reduced = true;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const int64_t size = shape[axis];
      const bool axis_is_reduced = is_reduced[static_cast<size_t>(axis)];
      (axis_is_reduced ? elements : outputs) *= size;
      if (size == 1) continue;
      if (stride == 1) neighbours_reduce = axis_is_reduced;
      (axis_is_reduced ? reduced : kept)
          .AddOutside(size, stride, stride > 1 && axis_is_reduced == previous_is_reduced);
      previous_is_reduced = axis_is_reduced;
      stride *= size;
    }
  }
  // A matrix whose rows are reduced to one.
  CudaFoldView(int64_t rows, int64_t columns) : outputs(columns), elements(rows) {
    neighbours_reduce = columns == 1;
    kept.AddOutside(columns, 1, false);
    reduced.AddOutside(rows, columns, false);
  }

  CudaDims kept;
  CudaDims reduced;
  int64_t outputs = 1;
  int64_t elements = 1;  // that make up an output
  bool neighbours_reduce = true;
};

// How a view is cut.
struct CudaFoldCut {
  // Enough blocks for all multiprocessors.
  static constexpr int64_t kBlocks = 1024;
  // The least elements of a thread that make a part worth its own result.
  static constexpr int64_t kLeast = 8;

  explicit CudaFoldCut(const CudaFoldView& view, bool may_part = true) {
    constexpr int64_t kBlock = kCudaThreads;
    const auto power = [](int64_t least, int64_t most) {
      int64_t result = 1;
      while (result < std::min(least, most)) result *= 2;
      return result;
    };
    if (view.neighbours_reduce) {
      // Some elements for each thread, but whole warps if there are enough elements for one; a
      // block for each output if there are few.
      const bool has_few_outputs = view.outputs < kBlocks;
      threads = power(view.elements, has_few_outputs ? kBlock : 32);
      while (!has_few_outputs && threads < kBlock && threads * kLeast * 2 < view.elements) {
        threads *= 2;
      }
      slots = kBlock / threads;
    } else {
      slots = power(view.kept.sizes[0], 32);
      threads = std::min(power(view.elements, kBlock), kBlock / slots);
      slots = kBlock / threads;
    }
    tiles = (view.outputs + slots - 1) / slots;
    if (may_part && tiles > 0) {
      parts = std::clamp<int64_t>(std::min(kBlocks / tiles, view.elements / (threads * kLeast)), 1,
                                  kBlocks);
    }
    part = (view.elements + parts - 1) / parts;
  }

  int64_t slots = 1;    // of a tile
  int64_t threads = 1;  // of a slot
  int64_t tiles = 0;
  int64_t parts = 1;
  int64_t part = 0;  // elements
};

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
  Carry* mine = carries + thread * slots + slot;
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
        int64_t place = first + view.reduced.PlaceOf(in_run.quotient, 1);
        for (int64_t i = begin + thread; i < end; i += threads) {
          rule.Add(place + in_run.rest * stride, output, i, &carry);
          in_run.rest += threads;
          if (in_run.rest < run) continue;
          const CudaDivision next = Divide(in_run.rest, run);
          in_run = {in_run.quotient + next.quotient, next.rest};
          place = first + view.reduced.PlaceOf(in_run.quotient, 1);
        }
      }
    }
    __syncthreads();  // until the last tile's carries have been read
    *mine = carry;
    for (int distance = threads / 2; distance > 0; distance /= 2) {
      __syncthreads();
      if (thread < distance) *mine = carry = Rule::Join(carry, mine[distance * slots]);
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

// The work of one rule on views of at most `elements` elements; made by the factory.
template <class Rule>
class CudaFold {
 public:
  CudaFold(PrepareContext& context, int64_t elements)
      : workspace_(context.RequestWorkspace(
            std::min(elements / CudaFoldCut::kLeast, CudaFoldCut::kBlocks * kCudaThreads) *
            static_cast<int64_t>(sizeof(typename Rule::Carry)))) {}

  // `what` names the work in an Error.
  void Run(const KernelContext& run, const char* what, const CudaFoldView& view,
           const Rule& rule) const {
    using Carry = typename Rule::Carry;
    if (view.outputs == 0) return;
    const CudaFoldCut cut(view);
    auto* parts = cut.parts == 1 ? nullptr : static_cast<Carry*>(run.workspace(workspace_));
    FoldTiles<<<CudaBlocks(cut.tiles * cut.parts), kCudaThreads, 0, StreamOf(run)>>>(rule, view,
                                                                                     cut, parts);
    if (parts != nullptr) {
      const CudaFoldView matrix(cut.parts, view.outputs);
      const CudaFoldCut whole(matrix, /*may_part=*/false);
      Carry* const none = nullptr;
      FoldTiles<<<CudaBlocks(whole.tiles), kCudaThreads, 0, StreamOf(run)>>>(
          CudaPartsRule<Rule>{rule, parts}, matrix, whole, none);
    }
    CheckLaunch(what);
  }

 private:
  int workspace_;
};

// The number of an element's output, for what is the reverse of a reduction.
class CudaOutputOf {
 public:
  CudaOutputOf(const Shape& shape, const AxisFlags& is_reduced) {
    int64_t stride = 1;  // of the outputs
    bool previous_is_reduced = false;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const bool axis_is_reduced = is_reduced[static_cast<size_t>(axis)];
      if (shape[axis] == 1) continue;
      dims_.AddOutside(shape[axis], axis_is_reduced ? 0 : stride,
                       axis_is_reduced == previous_is_reduced);
      if (!axis_is_reduced) stride *= shape[axis];
      previous_is_reduced = axis_is_reduced;
    }
  }

  __device__ int64_t operator()(int64_t element) const { return dims_.PlaceOf(element); }

 private:
  CudaDims dims_;
};

}  // namespace skiff
