#include "operators/common/libraries/kernel_libraries.h"

#include <hwy/highway.h>

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"
#include "operators/common/libraries/onednn.h"

namespace skiff {
namespace {

// Holds Highway to the used instruction set and returns its version and target. Of two targets, the
// better one has the lower bit.
std::string LimitHighway() {
  const InstructionSet used = UsedInstructionSet();
  if (used != ProcessorInstructionSet()) {
    hwy::DisableTargets((used == InstructionSet::kAvx2 ? HWY_AVX2 : HWY_SSE4) - 1);
  }
  const int64_t targets = hwy::SupportedTargets();
  // SupportedTargets itself leaves a choice among all targets, disabled ones included.
  hwy::GetChosenTarget().Update(targets);
  const int64_t compiled = targets & HWY_TARGETS;
  return StrCat(HWY_MAJOR, '.', HWY_MINOR, '.', HWY_PATCH, ", ",
                hwy::TargetName(compiled & -compiled));
}

}  // namespace

void SetKernelLibraries(OpRegistry& registry) {
  registry.SetLibrary("oneDNN", OnednnVersion());
  registry.SetLibrary("Highway", LimitHighway());
}

}  // namespace skiff
