#include "framework/ir/restored_program.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace skiff {
namespace {

void Restore(const Block& before, Block* block) {
  block->RemoveOps(0, block->ops().size());
  for (const auto& op : before.ops()) block->AppendOp(*op);
  std::vector<std::string> added;
  for (const auto& var : block->vars()) {
    const Var* was = before.FindLocalVar(var->name);
    if (was == nullptr) {
      added.push_back(var->name);
    } else {
      *var = *was;
    }
  }
  block->RemoveVars(added);
  for (const auto& var : before.vars()) {
    if (block->FindLocalVar(var->name) == nullptr) block->CreateVar(*var);
  }
}

}  // namespace

RestoredProgram::RestoredProgram(Program* program) : program_(program), before_(program->Clone()) {}

RestoredProgram::~RestoredProgram() {
  for (size_t i = 0; before_ != nullptr && i < before_->block_count(); ++i) {
    const auto index = static_cast<int32_t>(i);
    Restore(*before_->block(index), program_->block(index));
  }
}

}  // namespace skiff
