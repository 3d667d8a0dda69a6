// A sum over ranks in the order of ranks, ((x0 + x1) + x2) + …, or the largest number of all ranks.
//
// The elements are cut into as many slices as there are ranks. Each rank gets its slice from all
// ranks, and reduces it; that is a reduce-scatter. For an all-reduce, the results then go to all
// ranks. So a rank sends 2 · (N - 1) / N of its bytes, whatever the number N of ranks, and all
// ranks get the same bits. Half goes out in two bytes.
//
// How the elements are cut depends on their number alone, never on where they lie: so the messages
// of all ranks fit each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "operators/collective/kernels/array_list.h"
#include "operators/collective/kernels/reducer.h"
#include "operators/collective/kernels/slice_gather.h"
#include "operators/common/ranks/messages.h"
#include "operators/common/ranks/scratch.h"

namespace skiff {

class SliceReduction {
 public:
  // `reducer` must outlive the object. `element_count`: the most that a run has. Lists of several
  // arrays take more scratch memory than single arrays.
  SliceReduction(PrepareContext& context, const Reducer& reducer, RankReduction reduction,
                 DType dtype, DType result_dtype, size_t arrays, int64_t element_count);

  // Reduce `x`, of the same number of elements on all ranks, to `out`, times `factor`. Both may be
  // the same memory. AllReduce gives all ranks all elements. ReduceScatter gives each rank its part
  // of the elements of `x`, which becomes the elements of `out` from `out_begin` on; `parts` are
  // the same on all ranks. There must be a communicator. Throw what Communicator::Exchange throws.
  void AllReduce(const KernelContext& run, InArrays* x, double factor, OutArrays* out);
  void ReduceScatter(const KernelContext& run, InArrays* x, double factor,
                     std::span<const ListSlice> parts, int64_t out_begin, OutArrays* out);

 private:
  void CutAllReduce(int64_t begin, int64_t count, int32_t ranks);
  // Takes elements [begin, begin + count) of each part, as far as the part has them.
  void CutReduceScatter(int64_t begin, int64_t count, std::span<const ListSlice> parts);
  // Reduces this rank's slice. Returns where the result is: at elements [begin, …) of `out` if
  // these lie together, else in scratch memory, and copied from there.
  const void* ReduceOwn(const KernelContext& run, InArrays* x, double factor, int64_t begin,
                        OutArrays* out);

  const Reducer& reducer_;
  RankReduction reduction_;
  DType dtype_;
  DType result_dtype_;
  Scratch scratch_;
  Messages messages_;
  std::vector<ListSlice> slices_;  // by rank
};

}  // namespace skiff
