#include "framework/builder/block_call.h"

#include <algorithm>
#include <utility>

#include "framework/builder/current_block.h"
#include "framework/builder/program_guard.h"
#include "framework/ir/op_role.h"
#include "framework/tensor/dims_agree.h"
#include "framework/tensor/shape.h"

namespace skiff {
namespace {

void AddOnce(const std::string& name, std::vector<std::string>* names) {
  if (std::ranges::find(*names, name) == names->end()) names->push_back(name);
}

}  // namespace

BlockUses UsesOutside(const Block& block) {
  BlockUses uses;
  std::vector<std::string> made;  // for sure
  const auto is_outside = [&](const std::string& name) {
    return name != kEmptyVarName && block.FindLocalVar(name) == nullptr;
  };
  for (const auto& op : block.ops()) {
    for (const std::string& name : op->InputNames()) {
      const bool is_made_here = std::ranges::find(made, name) != made.end();
      if (is_outside(name) && !is_made_here) AddOnce(name, &uses.reads);
    }
    for (const std::string& name : op->OutputNames()) {
      if (!is_outside(name)) continue;
      AddOnce(name, &uses.writes);
      // A block inside may run zero times and leave what was there.
      if (op->SubBlocks().empty()) made.push_back(name);
    }
  }
  return uses;
}

Block* BuildBlock(const std::function<void()>& build) {
  Block* block = DefaultMainProgram().AppendBlock(CurrentBlock().index());
  const BlockGuard guard(block);
  try {
    build();
  } catch (...) {
    block->RemoveOps(0, block->ops().size());
    throw;
  }
  return block;
}

void AppendWhile(const LayerCall& call, const Variable& condition, const Block& body) {
  const BlockUses uses = UsesOutside(body);
  call.Enforce(std::ranges::count(uses.writes, condition.name()) > 0,
               "the body doesn't assign to \"", condition.name(),
               "\", so that the loop would never end");
  Op op("while");
  op.SetInput("X", uses.reads).SetInput("Condition", {condition.name()});
  op.SetOutput("Out", uses.writes).SetOutput("StepScopes", {NewScopes(call)});
  op.SetAttr("sub_block", BlockIndex{body.index()}).SetAttr("is_test", false);
  call.Append(std::move(op));
}

void EnforceSame(const LayerCall& call, std::string_view what_x, const Variable& x,
                 std::string_view what_to, const Variable& to) {
  call.Enforce(x.dtype() == to.dtype() && DimsAgree(x.dims(), to.dims()), what_x, "\"", x.name(),
               "\" is ", x.dtype(), " ", Shape(x.dims()), ", ", what_to, "\"", to.name(), "\" is ",
               to.dtype(), " ", Shape(to.dims()), ": expected the same");
}

std::string NewScopes(const LayerCall& call) {
  const Variable scopes = call.NewOutput();
  scopes.var().kind = VarKind::kStepScopes;
  return scopes.name();
}

}  // namespace skiff
