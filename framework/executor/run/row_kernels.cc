#include "framework/executor/run/row_kernels.h"

#include <algorithm>

namespace skiff {

BoundKernel* RowKernels::Choose(const Instruction& instruction, const ValueTensors& values,
                                const Prepare& prepare) {
  // As many as a loop over a batch of 64 sequences needs, which end one after the other.
  constexpr size_t kKept = 64;
  wanted_.clear();
  const auto add = [&](const std::vector<ValueId>& ids) {
    for (const ValueId id : ids) {
      if (!id) continue;
      const Tensor& tensor = *values.Of(id);
      wanted_.push_back(tensor.shape().rank() == 0 ? 1 : tensor.shape()[0]);
      for (const auto& offsets : tensor.lod()) {
        wanted_.push_back(static_cast<int64_t>(offsets.size()));
      }
    }
  };
  add(instruction.inputs);
  add(instruction.outputs);
  const auto found =
      std::ranges::find_if(kernels_, [&](const auto& kernel) { return kernel.first == wanted_; });
  if (found != kernels_.end()) {
    kernels_.splice(kernels_.begin(), kernels_, found);
  } else {
    std::unique_ptr<BoundKernel> kernel = prepare();
    kernel->Bind();
    kernels_.emplace_front(wanted_, std::move(kernel));
    if (kernels_.size() > kKept) kernels_.pop_back();
  }
  return kernels_.front().second.get();
}

}  // namespace skiff
