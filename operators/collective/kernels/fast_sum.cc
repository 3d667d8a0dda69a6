#include "operators/collective/kernels/fast_sum.h"

#include <algorithm>
#include <cstddef>

#include "framework/comm/communicator.h"
#include "operators/collective/kernels/collective_definition.h"

namespace skiff {
namespace {

// The regions of scratch memory: sums that have another dtype or another place than the result, and
// parts of lists, before and after the sum.
enum Region { kSums, kParts };

DType SumDType(DType dtype) { return IsHalf(dtype) ? DType::kFloat32 : dtype; }

}  // namespace

FastSum::FastSum(PrepareContext& context, const Reducer& reducer, DType dtype, DType result_dtype,
                 size_t arrays, int64_t element_count)
    : reducer_(reducer),
      dtype_(dtype),
      sum_dtype_(SumDType(dtype)),
      result_dtype_(result_dtype),
      scratch_(context, element_count, SizeOf(sum_dtype_),
               arrays > 1                    ? 2
               : sum_dtype_ != result_dtype_ ? 1
                                             : 0) {}

void FastSum::Run(const KernelContext& run, InArrays* x, double factor, OutArrays* out) {
  // For two ranks, one of which is another one, all elements of a region.
  const int64_t piece = scratch_.ElementsOfRank(2);
  int64_t begin = 0;
  do {
    const int64_t count = std::min(piece, x->element_count() - begin);
    Sum(run, x, factor, begin, count, out);
    begin += count;
  } while (begin < x->element_count());
}

void FastSum::Sum(const KernelContext& run, InArrays* x, double factor, int64_t begin,
                  int64_t count, OutArrays* out) {
  const void* own = x->Find(begin, count);
  if (own == nullptr && count > 0) {
    x->CopyTo(run, begin, count, scratch_.Region(run, kParts));
    own = scratch_.Region(run, kParts);
  }
  void* place = out->Find(begin, count);
  const bool sums_there = count == 0 || (place != nullptr && sum_dtype_ == result_dtype_);
  void* sums = sums_there ? place : scratch_.Region(run, kSums);
  if (sums != own) {
    reducer_.Reduce(
        run,
        {.dtype = dtype_, .result_dtype = sum_dtype_, .count = count, .own = own, .result = sums});
  }
  run.communicator->Sum(sums, count, sum_dtype_, run.device().stream);
  if (sums_there && factor == 1) return;
  void* result = place != nullptr || count == 0 ? place : scratch_.Region(run, kParts);
  reducer_.Reduce(run, {.factor = factor,
                        .dtype = sum_dtype_,
                        .result_dtype = result_dtype_,
                        .count = count,
                        .own = sums,
                        .result = result});
  if (place == nullptr) out->CopyFrom(run, result, begin, count);
}

}  // namespace skiff
