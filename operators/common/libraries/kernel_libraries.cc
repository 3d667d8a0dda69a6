#include "operators/common/libraries/kernel_libraries.h"

#include <hwy/highway.h>

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"
#include "operators/common/libraries/onednn.h"

namespace skiff {
namespace {

// Returns Highway's target for an instruction set.
int64_t TargetOf(InstructionSet set) {
  switch (set) {
    case InstructionSet::kBaseline:
      return HWY_SSE4;
    case InstructionSet::kAvx2:
      return HWY_AVX2;
    case InstructionSet::kAvx512:
    case InstructionSet::kAvx512Bf16:  // no target of Highway's: see bf16_product.cc
      break;
  }
  return HWY_AVX3;
}

// Holds Highway to the used instruction set and returns its version and target. Of two targets, the
// better one has the lower bit.
std::string LimitHighway() {
  const InstructionSet used = UsedInstructionSet();
  if (used != ProcessorInstructionSet()) {
    hwy::DisableTargets(TargetOf(used) - 1);
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
