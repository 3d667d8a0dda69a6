// recurrent: runs a block for each part of its inputs along dim 0 (StaticRNN).
//
// Inside, each of `inputs` and `outputs` means the part of the iteration. States begin as
// `initial_states`; inside, ex_states[i] is what states[i] was when the iteration before ended.
// With `reverse` the last part comes first. Source: Fluid's recurrent.
//
// The gradient op runs the gradient block for each iteration, the last one first. Inside, the
// gradient of a variable x is x@GRAD: those of outputs are parts of outputs@GRAD, and
// states[i]@GRAD is what ex_states[i]@GRAD was in the iteration after, at first 0. Gradients of
// inputs are stacked, those of parameters are sums over the iterations.
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/control/kernels/block_op.h"

namespace skiff {
namespace {

std::vector<AttrDef> RecurrentAttrs() {
  const auto names = [](StaticText name, StaticText doc) {
    return AttrDef{.name = name,
                   .type = AttrType::kStrings,
                   .default_value = std::vector<std::string>(),
                   .doc = doc};
  };
  const auto flag = [](StaticText name, bool value, StaticText doc) {
    return AttrDef{.name = name, .type = AttrType::kBool, .default_value = value, .doc = doc};
  };
  return {names("ex_states", "The states inside, as the iteration before has left them."),
          names("states", "The states inside, as the iteration leaves them."),
          flag("has_states", false, "Whether there are states; nothing depends on it."),
          flag("reverse", false, "Whether the last part comes first."),
          flag("is_train", true, "Whether there is a gradient op; nothing depends on it."),
          names("skip_eager_deletion_vars", "What Fluid must not free; nothing depends on it.")};
}

}  // namespace

void RegisterRecurrent(OpRegistry& registry) {
  OpDef def = BlockOpDefinition("recurrent", {.kind = BlockRule::Kind::kRecurrent});
  def.doc = "Runs a block for each part of its inputs along dim 0.";
  const auto list = [](StaticText name, StaticText doc, bool shape_only = false) {
    return SlotDef{.name = name,
                   .doc = doc,
                   .duplicable = true,
                   .dispensable = true,
                   .shape_only = shape_only,
                   .selected_rows = true};
  };
  def.inputs = {list("inputs", "[T, …] each: T parts."),
                list("initial_states", "What ex_states are in the first iteration."),
                list("parameters", "The other variables outside that the block reads.")};
  def.outputs = {list("outputs", "[T, …] each: what the block makes, part by part."),
                 {.name = "step_scopes", .doc = "Ties the gradient op to this one."}};
  for (AttrDef& attr : RecurrentAttrs()) def.attrs.push_back(std::move(attr));
  def.grad =
      GradOp("recurrent_grad",
             {"inputs", "initial_states", "parameters", "outputs", "outputs@GRAD", "step_scopes"},
             {"inputs@GRAD", "initial_states@GRAD", "parameters@GRAD"});
  registry.Add(std::move(def));

  OpDef grad = BlockOpDefinition("recurrent_grad",
                                 {.kind = BlockRule::Kind::kRecurrent, .is_gradient = true});
  grad.doc = "The gradient of recurrent.";
  grad.inputs = {list("inputs", "Those of recurrent.", true),
                 list("initial_states", "Those of recurrent.", true),
                 list("parameters", "Those of recurrent.", true),
                 list("outputs", "Those of recurrent.", true),
                 list("outputs@GRAD", "The gradients of outputs."),
                 {.name = "step_scopes", .doc = "That of recurrent.", .shape_only = true}};
  grad.outputs = {list("inputs@GRAD", "The gradients of inputs."),
                  list("initial_states@GRAD", "The gradients of initial_states."),
                  list("parameters@GRAD", "The gradients of parameters.")};
  for (AttrDef& attr : RecurrentAttrs()) grad.attrs.push_back(std::move(attr));
  registry.Add(std::move(grad));
}

}  // namespace skiff
