#include "framework/op/registry.h"
#include "operators/all_ops.h"

namespace skiff {

OpRegistry& DefaultOpRegistry() {
  static OpRegistry& registry = *[] {
    auto* made = new OpRegistry;
    RegisterAllOps(*made);
    return made;
  }();
  return registry;
}

}  // namespace skiff
