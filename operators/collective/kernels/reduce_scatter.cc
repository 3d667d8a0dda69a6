#include "operators/collective/kernels/reduce_scatter.h"

#include <utility>
#include <vector>

#include "framework/op/arguments.h"
#include "operators/collective/kernels/array_list.h"
#include "operators/collective/kernels/collective_definition.h"
#include "operators/collective/kernels/slice_reduction.h"
#include "operators/common/memory_mover.h"

namespace skiff {

std::unique_ptr<Kernel> PrepareReduceScatter(PrepareContext& context, const Reducer& reducer) {
  const TensorMeta& x_meta = context.Input("X");
  SliceReduction reduction(context, reducer, RankReduction::kSum, x_meta.dtype, x_meta.dtype, 1,
                           x_meta.shape.element_count());
  const In<> x(context, "X");
  const Out<> out(context, "Out");
  const int64_t nranks = context.IntAttr("nranks");
  return MakeRowsKernel([=, reduction = std::move(reduction),
                         parts = std::vector<ListSlice>(static_cast<size_t>(nranks)),
                         from = InArrays(1, x_meta.dtype),
                         to = OutArrays(1, x_meta.dtype)](const KernelContext& run) mutable {
    CheckRankCount(run, "c_reducescatter", nranks);
    if (nranks == 1) {
      return MemoryMoverOf(run).CopyBytes(run, x(run), out(run), x.tensor(run).byte_count());
    }
    from.SetArrays([&](size_t) -> const Tensor& { return x.tensor(run); });
    to.SetArrays([&](size_t) -> Tensor& { return out.tensor(run); });
    const int64_t part = to.element_count();
    for (int32_t rank = 0; rank < nranks; ++rank) {
      parts[static_cast<size_t>(rank)] = {.begin = rank * part, .count = part};
    }
    reduction.ReduceScatter(run, &from, 1, parts, 0, &to);
  });
}

}  // namespace skiff
