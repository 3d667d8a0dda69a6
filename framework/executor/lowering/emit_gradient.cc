#include "framework/executor/lowering/emit_gradient.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/executor/lowering/loop_links.h"
#include "framework/op/block_rule.h"
#include "framework/op/grad_name.h"
#include "framework/plan/loop.h"

namespace skiff {
namespace {

// Takes the gradient half that was prepared with the forward op.
PreparedGradient TakePrepared(BlockLowering* outer, const Op& op, const OpDef& def) {
  const std::vector<std::string>& scopes = op.Input(SlotsOf(def.block->kind).scopes);
  const auto found =
      scopes.empty() ? outer->gradients().end() : outer->gradients().find(scopes.front());
  SKIFF_ENFORCE(found != outer->gradients().end(), kUnimplemented, op.type,
                ": expected its forward op before it in the same block");
  PreparedGradient prepared = std::move(found->second);
  outer->gradients().erase(found);
  return prepared;
}

// Gives the inputs that are known only at the gradient op to the instruction and its links.
class LateInputs {
 public:
  LateInputs(BlockLowering* outer, PreparedGradient* prepared)
      : outer_(*outer),
        prepared_(*prepared),
        type_(prepared->instruction.op->type),
        loop_(std::make_shared<Loop>(*prepared->instruction.loop)) {}

  void Read() {
    for (const auto& [index, name] : prepared_.reads) {
      ValueId value = outer_.TryRead(name);
      if (!value) value = ZerosWithRowsOfRun(name);
      prepared_.instruction.inputs[index] = value;
      const int input = static_cast<int>(index);
      LinkFeeds(input, name, value);
      LinkFetches(input, name, value);
      CheckArrays(input, name, value);
    }
    prepared_.instruction.loop = std::move(loop_);
  }

 private:
  // Returns zeros like the variable whose gradient `name` is, if these have other rows from run to
  // run; else none.
  ValueId ZerosWithRowsOfRun(const std::string& name) {
    const ValueId forward = outer_.Current(std::string(ForwardName(name)));
    if (!forward || !outer_.RowsVary(forward)) return {};
    TensorMeta meta = outer_.plan()[forward].meta;
    if (meta.is_array || meta.is_selected_rows()) return {};
    meta.persistable = false;
    const ValueId zeros = outer_.AddValue(name, meta, Storage::kArena);
    outer_.MarkVarying(zeros);
    const OpDef& def = outer_.inputs().registry.Get("fill_zeros_like");
    outer_.Append(MakeInstruction(&outer_.plan(), def, prepared_.instruction, {}, {{"X", forward}},
                                  {{"Out", zeros}}));
    return zeros;
  }

  void LinkFeeds(int input, const std::string& name, ValueId value) {
    for (LoopFeed& feed : loop_->feeds) {
      if (feed.input != input) continue;
      TensorMeta expected = loop_->body[feed.value].meta;
      if (feed.kind == LoopFeed::Kind::kPart) {
        expected.shape = StackShape(loop_->iterations, expected.shape);
      }
      if (value) Check(name, value, expected);
      // A gradient that nobody has written is 0, in each iteration.
      if (!value) feed = {.kind = LoopFeed::Kind::kCarried, .value = feed.value};
    }
  }

  void LinkFetches(int input, const std::string& name, ValueId value) {
    for (LoopFetch& fetch : loop_->fetches) {
      // It passes through if there is no iteration.
      if (fetch.input == input && value) {
        const auto definition =
            std::ranges::find(prepared_.defines, static_cast<size_t>(fetch.output),
                              &PreparedGradient::Definition::output);
        Check(name, value, definition->meta);
      }
      if (fetch.input == input && !value) fetch.input = -1;
      if (fetch.like == input && !value) fetch.like = -1;
    }
  }

  void CheckArrays(int input, const std::string& name, ValueId value) const {
    for (const LoopScopeValue& array : loop_->scope_values) {
      if (array.is_output || array.index != input) continue;
      SKIFF_ENFORCE(value, kFailedPrecondition, type_, ": no op has written the array \"", name,
                    "\", from which it takes gradients");
      SKIFF_ENFORCE(outer_.plan()[value].meta.is_array, kInvalidArgument, type_, ": \"", name,
                    "\" is a tensor, expected an array of tensors, as inside");
    }
  }

  void Check(const std::string& name, ValueId value, const TensorMeta& expected) const {
    const TensorMeta& given = outer_.plan()[value].meta;
    SKIFF_ENFORCE(given.shape == expected.shape && given.dtype == expected.dtype &&
                      given.layout == expected.layout && !given.is_array,
                  kInvalidArgument, type_, ": \"", name, "\" is ",
                  given.is_array ? "an array of " : "", given.dtype, " ", given.shape,
                  ", expected ", expected.dtype, " ", expected.shape);
  }

  BlockLowering& outer_;
  PreparedGradient& prepared_;
  const std::string& type_;  // of the op
  std::shared_ptr<Loop> loop_;
};

// The LoDs of an earlier segment aren't those of this one.
void TakeLoDs(const BlockLowering& outer, PreparedGradient* prepared) {
  for (const LoopFetch& fetch : prepared->instruction.loop->fetches) {
    const auto definition = std::ranges::find(prepared->defines, static_cast<size_t>(fetch.output),
                                              &PreparedGradient::Definition::output);
    if (definition == prepared->defines.end() || definition->meta.lod == nullptr) continue;
    if (fetch.like < 0) continue;
    const ValueId like = prepared->instruction.inputs[static_cast<size_t>(fetch.like)];
    if (like) definition->meta.lod = outer.plan()[like].meta.lod;
  }
}

}  // namespace

void EmitGradient(BlockLowering* outer, const Op& op, const OpDef& def, size_t position) {
  PreparedGradient prepared = TakePrepared(outer, op, def);
  Instruction& instruction = prepared.instruction;
  instruction.position = position;
  CheckScopeIsAsBefore(*outer, instruction);
  LateInputs(outer, &prepared).Read();
  TakeLoDs(*outer, &prepared);
  for (const PreparedGradient::Definition& definition : prepared.defines) {
    instruction.outputs[definition.output] = outer->Write(def, definition.name, definition.meta);
  }
  outer->Append(std::move(instruction));
}

void CheckScopeIsAsBefore(const BlockLowering& outer, const Instruction& gradient) {
  const Plan& plan = outer.plan();
  for (const ValueId input : gradient.inputs) {
    if (!input || plan[input].storage != Storage::kScope || plan[input].meta.is_array) continue;
    const std::string& name = plan[input].name;
    SKIFF_ENFORCE(outer.Current(name) == input, kFailedPrecondition, gradient.op->type,
                  ": reads \"", name,
                  "\", which is overwritten after the loop; let that op write another variable");
  }
}

}  // namespace skiff
