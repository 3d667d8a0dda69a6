#include "operators/common/kernel_libraries.h"

#include <hwy/highway.h>

#include "framework/base/error.h"
#include "operators/common/onednn.h"

namespace skiff {
namespace {

std::string HighwayVersion() {
  // The better target has the lower bit.
  const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return StrCat(HWY_MAJOR, '.', HWY_MINOR, '.', HWY_PATCH, ", ",
                hwy::TargetName(targets & -targets));
}

}  // namespace

void SetKernelLibraries(OpRegistry& registry) {
  registry.SetLibrary("oneDNN", OnednnVersion());
  registry.SetLibrary("Highway", HighwayVersion());
}

}  // namespace skiff
