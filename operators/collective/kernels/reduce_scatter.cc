#include "operators/collective/kernels/reduce_scatter.h"

#include <utility>

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
  return MakeRowsKernel([=, nranks = context.IntAttr("nranks"), reduction = std::move(reduction),
                         from = InArrays(1, x_meta.dtype),
                         to = OutArrays(1, x_meta.dtype)](const KernelContext& run) mutable {
    CheckRankCount(run, "c_reducescatter", nranks);
    if (nranks == 1) {
      return MemoryMoverOf(run).CopyBytes(run, x(run), out(run), x.tensor(run).byte_count());
    }
    from.SetArrays([&](size_t) -> const Tensor& { return x.tensor(run); });
    to.SetArrays([&](size_t) -> Tensor& { return out.tensor(run); });
    reduction.ReduceScatter(run, &from, 1, &to);
  });
}

}  // namespace skiff
