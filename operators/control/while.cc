// while: runs a block as long as Condition is true.
//
// Variables that the block writes and that exist outside keep their values from one iteration to
// the next; what the block declares begins anew in each. Source: Fluid's while.
//
// Its gradient op runs the gradient block once for each iteration, the last one first. Inside, the
// gradient of a variable x is x@GRAD. For each of Out@GRAD, `original_output_grad` names the
// variable inside that begins as that gradient is outside. If it also is the gradient of one of X,
// it is handed from one iteration to the one before; each other gradient of X is the sum over the
// iterations. Source: Fluid's while_grad.
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/control/kernels/block_op.h"

namespace skiff {

void RegisterWhile(OpRegistry& registry) {
  OpDef def = BlockOpDefinition("while", {.kind = BlockRule::Kind::kWhile});
  def.doc = "Runs a block as long as Condition is true.";
  def.inputs = {{.name = "X",
                 .doc = "The variables that the block reads and that exist outside.",
                 .duplicable = true,
                 .dispensable = true,
                 .selected_rows = true},
                {.name = "Condition", .doc = "One bool, which the block sets."}};
  def.outputs = {{.name = "Out",
                  .doc = "The variables that the block writes and that exist outside.",
                  .duplicable = true,
                  .dispensable = true,
                  .selected_rows = true},
                 {.name = "StepScopes", .doc = "Ties the gradient op to this one."}};
  def.attrs.push_back({.name = "is_test",
                       .type = AttrType::kBool,
                       .default_value = false,
                       .doc = "Says that there is no gradient op; nothing depends on it."});
  def.grad = GradOp("while_grad", {"X", "Out", "Out@GRAD", "StepScopes"}, {"X@GRAD"});
  registry.Add(std::move(def));

  OpDef grad =
      BlockOpDefinition("while_grad", {.kind = BlockRule::Kind::kWhile, .is_gradient = true});
  grad.doc =
      "The gradient of while: runs its gradient block for each iteration, the last one first.";
  grad.inputs = {{.name = "X", .doc = "Those of while.", .duplicable = true, .shape_only = true},
                 {.name = "Out", .doc = "Those of while.", .duplicable = true, .shape_only = true},
                 {.name = "Out@GRAD",
                  .doc = "Gradients of variables that the block writes.",
                  .duplicable = true,
                  .dispensable = true,
                  .selected_rows = true},
                 {.name = "StepScopes", .doc = "That of while.", .shape_only = true}};
  grad.outputs = {{.name = "X@GRAD",
                   .doc = "The gradients of X.",
                   .duplicable = true,
                   .dispensable = true,
                   .selected_rows = true}};
  grad.attrs.push_back(
      {.name = "original_output_grad",
       .type = AttrType::kStrings,
       .default_value = std::vector<std::string>(),
       .doc = "For each of Out@GRAD, the variable of the gradient block that begins as it."});
  registry.Add(std::move(grad));
}

}  // namespace skiff
