#include "operators/optimizer/kernels/row_values.h"

#include <cstdint>
#include <type_traits>

#include "framework/base/element_count.h"
#include "framework/base/parallel.h"
#include "operators/common/half_arrays.h"
#include "operators/optimizer/kernels/list_walk.h"

namespace skiff {

template <typename T>
RowValues<T>::RowValues(PrepareContext& context, const UpdateArguments& arguments)
    : grad_(arguments.grads[0]) {
  if (!arguments.has_half_grads) return;
  // Repeated rows are added up before the update. Their sums must be floats: two-byte sums would
  // round after each addition.
  halves_ = HalfArraysOf(arguments.half);
  const int64_t elements = context.Input("Grad").shape.element_count();
  workspace_ = context.RequestWorkspace(ByteCount(elements, kDTypeOf<T>));
}

template <typename T>
const T* RowValues<T>::Get(const KernelContext& run) const {
  const Tensor& grad = run.input(grad_);
  if constexpr (std::is_same_v<T, float>) {
    if (workspace_ >= 0) {
      const auto* halves = static_cast<const uint16_t*>(grad.raw_data());
      auto* values = static_cast<float*>(run.workspace(workspace_));
      ParallelFor(grad.shape().element_count(), kListGrain, [&](int64_t begin, int64_t end) {
        halves_.to_floats(halves + begin, end - begin, values + begin);
      });
      return values;
    }
  }
  return grad.data<T>();
}

template class RowValues<float>;
template class RowValues<double>;

}  // namespace skiff
