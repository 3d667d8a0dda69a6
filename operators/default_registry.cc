#include "framework/op/registry.h"
#include "operators/all_ops.h"
#include "operators/common/libraries/kernel_libraries.h"

namespace skiff {

OpRegistry& DefaultOpRegistry() {
  static OpRegistry& registry = *[] {
    auto* made = new OpRegistry;
    RegisterAllOps(*made);
    SetKernelLibraries(*made);
    return made;
  }();
  return registry;
}

}  // namespace skiff
