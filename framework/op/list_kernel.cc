#include "framework/op/list_kernel.h"

#include <algorithm>
#include <array>

#include "framework/base/error.h"
#include "framework/base/parallel.h"

namespace skiff {

void ListKernel::Run(const KernelContext& run) {
  const ListStep step{.kernel = this, .context = &run};
  RunInStep({&step, 1});
}

void RunInStep(std::span<const ListStep> steps) {
  SKIFF_ENFORCE(steps.size() <= kMaxListSteps, kInvalidArgument, steps.size(),
                " kernels in step, expected at most ", kMaxListSteps);
  std::array<ListStep, kMaxListSteps> begun;
  size_t count = 0;
  for (const ListStep& step : steps) {
    if (step.kernel->Begin(*step.context)) begun[count++] = step;
  }
  if (count == 0) return;
  const std::span<const ListStep> active(begun.data(), count);
  const int64_t elements = active.front().kernel->element_count();
  for (const ListStep& step : active) {
    SKIFF_ENFORCE(step.kernel->element_count() == elements, kFailedPrecondition,
                  "kernels in step have ", step.kernel->element_count(), " and ", elements,
                  " elements, expected as many");
  }
  ParallelFor(elements, kListGrain, [active](int64_t begin, int64_t end) {
    for (; begin < end; begin += kListBlock) {
      const int64_t block_end = std::min(begin + kListBlock, end);
      for (const ListStep& step : active) {
        step.kernel->RunElements(*step.context, begin, block_end);
      }
    }
  });
  for (const ListStep& step : active) step.kernel->End(*step.context);
}

}  // namespace skiff
