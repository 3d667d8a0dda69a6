// The kernels of one instruction for other rows than planned.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "framework/executor/run/bound_kernel.h"
#include "framework/executor/storage/bound_values.h"
#include "framework/plan/plan.h"

namespace skiff {

// For an instruction with varying rows whose kernel doesn't take fewer rows. Keeps the kernels that
// were used last.
class RowKernels {
 public:
  using Prepare = std::function<std::unique_ptr<BoundKernel>()>;

  // Returns the kernel for the rows and LoD counts that the arguments have now. If there is no such
  // kernel, calls `prepare` and binds the new kernel. Throws the Errors of `prepare`.
  BoundKernel* Choose(const Instruction& instruction, const ValueTensors& values,
                      const Prepare& prepare);

  // Calls use(kernel) for each kernel.
  template <typename Use>
  void ForEach(const Use& use) const {
    for (const auto& [rows, kernel] : kernels_) use(*kernel);
  }

 private:
  // The rows of a kernel's arguments and the counts of their LoDs.
  using Rows = std::vector<int64_t>;

  std::list<std::pair<Rows, std::unique_ptr<BoundKernel>>> kernels_;  // used last first
  Rows wanted_;                                                       // reused to save allocations
};

}  // namespace skiff
