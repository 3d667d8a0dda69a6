#include "framework/executor/lowering/loop_lowering.h"

#include <cstdint>
#include <memory>

#include "framework/base/error.h"
#include "framework/executor/lowering/cut_loop.h"
#include "framework/executor/lowering/emit_gradient.h"
#include "framework/executor/lowering/emit_loop.h"
#include "framework/executor/lowering/joint_body.h"
#include "framework/executor/lowering/loop_form.h"
#include "framework/executor/lowering/loop_ops.h"
#include "framework/executor/lowering/recurrent_form.h"
#include "framework/executor/lowering/written_form.h"
#include "framework/op/block_rule.h"

namespace skiff {
namespace {

std::unique_ptr<LoopForm> MakeForm(BlockRule::Kind kind) {
  switch (kind) {
    case BlockRule::Kind::kWhile:
      return MakeWhileForm();
    case BlockRule::Kind::kConditional:
      return MakeConditionalForm();
    case BlockRule::Kind::kRecurrent:
      return MakeRecurrentForm();
  }
  Throw(ErrorCode::kInvalidArgument, "expected a kind of block rule, found ",
        static_cast<int>(kind));
}

// Returns false, and appends nothing, if the body must be lowered anew (JointBody::Lower).
bool TryLower(BlockLowering* outer, const LoopOps& ops) {
  const std::unique_ptr<LoopForm> form = MakeForm(ops.forward.def->block->kind);
  JointBody body(outer, ops, form.get());
  if (!body.Lower()) return false;
  EmitLoop(&body, *form, CutLoop(body.plan(), body.links()));
  return true;
}

}  // namespace

void LowerLoop(BlockLowering* outer, const Op& op, const OpDef& def, size_t position) {
  if (def.block->is_gradient) return EmitGradient(outer, op, def, position);
  constexpr int kAttempts = 8;
  // Several ops may run one block, and each attempt lowers the loops inside again, so there may be
  // as many bodies as ways through the nest.
  const auto blocks = static_cast<int64_t>(outer->block().program()->block_count());
  const int64_t most_bodies = 1000 + 4 * blocks;
  for (int i = 0; i < kAttempts; ++i) {
    SKIFF_ENFORCE(++*outer->inputs().bodies <= most_bodies, kUnimplemented, op.type, ": the ",
                  blocks, " blocks of the program would be planned more than ", most_bodies,
                  " times: expected fewer ops that run one block, or fewer loops in loops");
    if (TryLower(outer, FindLoopOps(*outer, op, def, position))) return;
  }
  Throw(ErrorCode::kUnimplemented, op.type, ": each iteration would write larger elements to an ",
        "array than the one before: expected a bound on their rows");
}

}  // namespace skiff
