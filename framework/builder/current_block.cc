#include "framework/builder/current_block.h"

#include "framework/base/error.h"
#include "framework/builder/build_state.h"

namespace skiff {

using internal::TheBuildState;

Block& CurrentBlock() {
  const internal::BuildState& state = TheBuildState();
  return state.block == nullptr ? *state.main->root() : *state.block;
}

BlockGuard::BlockGuard(Block* block) : previous_(TheBuildState().block) {
  SKIFF_ENFORCE(block != nullptr && block->program() == TheBuildState().main, kInvalidArgument,
                "BlockGuard: expected a block of the default main program");
  TheBuildState().block = block;
}

BlockGuard::~BlockGuard() { TheBuildState().block = previous_; }

OpRoleGuard::OpRoleGuard(int32_t role) : previous_(TheBuildState().op_role) {
  TheBuildState().op_role = role;
}
OpRoleGuard::~OpRoleGuard() { TheBuildState().op_role = previous_; }

const std::string& CurrentNameScope() { return TheBuildState().name_scope; }
int32_t CurrentOpRole() { return TheBuildState().op_role; }

}  // namespace skiff
