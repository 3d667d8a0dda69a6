#include "framework/executor/lowering/loop_ops.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "framework/analysis/op_uses.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad_name.h"

namespace skiff {
namespace {

const Block* BodyOf(const BlockLowering& outer, const Op& op) {
  const std::vector<int32_t> blocks = op.SubBlocks();
  SKIFF_ENFORCE(blocks.size() == 1, kInvalidArgument, op.type, ": runs ", blocks.size(),
                " blocks, expected one");
  return outer.block().program()->block(blocks[0]);
}

BlockOp FindGradient(const BlockLowering& outer, const LoopOps& loop) {
  if (loop.scopes == nullptr) return {};
  for (const Block* block : outer.blocks()) {
    for (size_t i = 0; i < block->ops().size(); ++i) {
      const Op& op = *block->ops()[i];
      const OpDef* def = outer.inputs().registry.Find(op.type);
      const bool is_gradient = def != nullptr && def->block != nullptr && def->block->is_gradient &&
                               def->block->kind == loop.forward.def->block->kind;
      if (!is_gradient || std::ranges::count(op.Input(loop.slots.scopes), *loop.scopes) == 0) {
        continue;
      }
      return {.op = &op, .def = def, .block = block, .position = i, .body = BodyOf(outer, op)};
    }
  }
  return {};
}

}  // namespace

LoopOps FindLoopOps(const BlockLowering& outer, const Op& op, const OpDef& def, size_t position) {
  LoopOps loop{.forward = {.op = &op,
                           .def = &def,
                           .block = &outer.block(),
                           .position = position,
                           .body = BodyOf(outer, op)},
               .gradient = {},
               .slots = SlotsOf(def.block->kind)};
  const std::vector<std::string>& scopes = op.Output(loop.slots.scopes);
  if (!scopes.empty()) loop.scopes = &scopes.front();
  loop.gradient = FindGradient(outer, loop);
  return loop;
}

std::string GradientSlot(const char* slot) { return std::string(slot) + kGradSuffix; }

std::vector<std::string> InnerResultGradients(const LoopOps& ops) {
  const Op& gradient = *ops.gradient.op;
  if (gradient.HasAttr(kInnerGradientsAttr)) {
    return gradient.Attr<std::vector<std::string>>(kInnerGradientsAttr);
  }
  return gradient.Input(GradientSlot(ops.slots.results));
}

std::vector<const Var*> WrittenOutside(const OpRegistry& registry, const BlockOp& op) {
  // Passes may have moved the op.
  const auto& ops = op.block->ops();
  const auto at = std::ranges::find(ops, op.op, &std::unique_ptr<Op>::get);
  std::vector<const Var*> written;
  for (const VarUse& use :
       UsesOf(registry, *op.block, static_cast<size_t>(at - ops.begin())).vars) {
    const bool is_tensor =
        use.var->kind == VarKind::kLoDTensor || use.var->kind == VarKind::kSelectedRows;
    if (!use.writes || use.var->persistable || !is_tensor || use.block == op.body) continue;
    written.push_back(use.var);
  }
  return written;
}

}  // namespace skiff
