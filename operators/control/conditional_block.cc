// conditional_block: runs a block once, or not at all.
//
// With is_scalar_condition it runs if Cond, one bool, is true; without, if none of Cond is empty.
// A variable outside that the block writes keeps its value if the block doesn't run; one without a
// value is 0 then. Source: Fluid's conditional_block, where it is undefined.
//
// The gradient op runs the gradient block if the block has run. If not, gradients of variables that
// the block writes pass through, and all others are 0.
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/control/kernels/block_op.h"

namespace skiff {
namespace {

AttrDef ScalarCondition() {
  return {.name = "is_scalar_condition",
          .type = AttrType::kBool,
          .default_value = false,
          .doc = "Whether Cond is one bool; otherwise the block runs if none of Cond is empty."};
}

}  // namespace

void RegisterConditionalBlock(OpRegistry& registry) {
  OpDef def = BlockOpDefinition("conditional_block", {.kind = BlockRule::Kind::kConditional});
  def.doc = "Runs a block if a condition is true.";
  def.inputs = {{.name = "Cond", .doc = "The condition.", .duplicable = true},
                {.name = "Input",
                 .doc = "The variables that the block reads and that exist outside.",
                 .duplicable = true,
                 .dispensable = true,
                 .selected_rows = true}};
  def.outputs = {{.name = "Out",
                  .doc = "The variables that the block writes and that exist outside.",
                  .duplicable = true,
                  .dispensable = true,
                  .selected_rows = true},
                 {.name = "Scope", .doc = "Ties the gradient op to this one."}};
  def.attrs.push_back(ScalarCondition());
  def.grad = GradOp("conditional_block_grad", {"Cond", "Input", "Out", "Out@GRAD", "Scope"},
                    {"Input@GRAD"});
  registry.Add(std::move(def));

  OpDef grad = BlockOpDefinition("conditional_block_grad",
                                 {.kind = BlockRule::Kind::kConditional, .is_gradient = true});
  grad.doc = "The gradient of conditional_block.";
  grad.inputs = {{.name = "Cond", .doc = "That of conditional_block.", .duplicable = true},
                 {.name = "Input",
                  .doc = "Those of conditional_block.",
                  .duplicable = true,
                  .dispensable = true,
                  .shape_only = true},
                 {.name = "Out",
                  .doc = "Those of conditional_block.",
                  .duplicable = true,
                  .dispensable = true,
                  .shape_only = true},
                 {.name = "Out@GRAD",
                  .doc = "Gradients of variables that the block writes.",
                  .duplicable = true,
                  .dispensable = true,
                  .selected_rows = true},
                 {.name = "Scope", .doc = "That of conditional_block.", .shape_only = true}};
  grad.outputs = {{.name = "Input@GRAD",
                   .doc = "The gradients of Input.",
                   .duplicable = true,
                   .dispensable = true,
                   .selected_rows = true},
                  {.name = "Cond@GRAD",
                   .doc = "Never computed: a condition has no gradient.",
                   .duplicable = true,
                   .dispensable = true}};
  grad.attrs.push_back(ScalarCondition());
  grad.attrs.push_back(
      {.name = "original_output_grad",
       .type = AttrType::kStrings,
       .default_value = std::vector<std::string>(),
       .doc = "For each of Out@GRAD, the variable of the gradient block that begins as it; if the "
              "attribute isn't set, the one of its name."});
  registry.Add(std::move(grad));
}

}  // namespace skiff
