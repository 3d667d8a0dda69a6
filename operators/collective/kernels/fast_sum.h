// A sum over ranks by the library that moves the bytes (Communicator::Sum), in an order of its own.
//
// Half goes out and comes back as float32, in four bytes. Sums of half would need two, but
// libraries round them after each addition: of hundreds of ranks, the last would add nothing to a
// bfloat16, and a float16 would overflow though the mean fits.
#pragma once

#include <cstdint>

#include "operators/collective/kernels/array_list.h"
#include "operators/collective/kernels/reducer.h"
#include "operators/common/ranks/scratch.h"

namespace skiff {

class FastSum {
 public:
  // The same as for SliceReduction. The dtypes are floats.
  FastSum(PrepareContext& context, const Reducer& reducer, DType dtype, DType result_dtype,
          size_t arrays, int64_t element_count);

  // Sums `x`, of the same number of elements on all ranks, to `out`, times `factor`. Both may be
  // the same memory. There must be a communicator. Throws what Communicator::Sum throws.
  void Run(const KernelContext& run, InArrays* x, double factor, OutArrays* out);

 private:
  void Sum(const KernelContext& run, InArrays* x, double factor, int64_t begin, int64_t count,
           OutArrays* out);

  const Reducer& reducer_;
  DType dtype_;
  DType sum_dtype_;
  DType result_dtype_;
  Scratch scratch_;
};

}  // namespace skiff
