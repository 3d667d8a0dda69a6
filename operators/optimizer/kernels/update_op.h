// The slots, attributes and shape rule of all ops that update parameters.
//
// An update op takes the tensors of any number of parameters. Argument i of each list (Param, Grad,
// the states) belongs to parameter i. Fluid's own programs give each op one parameter; the pass
// merge_optimizer merges these ops, so that a single op updates all parameters of a kind.
//
// The formula of the optimizer takes g instead of the gradient. g is computed in this order, each
// step rounded:
//   g = Grad * rescale_grad * GradScale
//   g = g + regularization_coeff * Param         with "l2_decay"
//   g = g + regularization_coeff * sign(Param)   with "l1_decay"
// If SkipUpdate is true, no variable changes.
//
// With multi_precision, parameters are float16 or bfloat16, and each has float32 master weights
// (MasterParam). The formula, g and norms then use the master weights. States and scalars are
// float32; the gradients all have the parameters' dtype or are all float32. ParamOut is
// MasterParamOut rounded as by the op cast: to the nearest number, ties to even. Whatever an update
// leaves alone (SkipUpdate, rows) keeps its value in both.
//
// An op that has a part (framework/op/update_part.h) updates only the elements of the part, of
// parameters with dense gradients; all scalars advance. The slots that `sharded` names have a
// single argument, a shard of the part. ParamOut has the other elements of Param; of MasterParamOut
// and states that aren't shards, the same is true.
//
// With a single parameter, the gradient may be selected rows. The slots of a row are added up
// first, in order of occurrence. Rows that aren't there have a gradient of 0, or are left alone
// (SparseRule, which the formula declares).
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "framework/op/kernel.h"
#include "framework/op/registry.h"
#include "framework/op/update_part.h"

namespace skiff {

// The differences between update ops.
struct UpdateOp {
  StaticText type;
  StaticText doc;

  // A state of a parameter: an input, and the output that is its next value. A scalar may have no
  // output (""), and a program may leave a scalar's output unconnected.
  struct State {
    StaticText input;
    StaticText output;
    StaticText doc;
    StaticText factor;  // UpdateRule::Power::factor, for a scalar that the program may advance
  };
  std::vector<State> states;            // of Param's shape; float32 where Param has a master copy
  std::vector<State> scalars;           // of one element a parameter, float32 or of Param's dtype
  std::vector<SlotDef> shared_scalars;  // one element for all parameters
  std::vector<AttrDef> attrs;           // replace common ones of the same name
  std::vector<StaticText> list_attrs;   // attributes with one entry for all parameters or for each
  StaticText merged_as;                 // UpdateRule::merged_as
  bool needs_norms = false;             // of whole parameters: a part has no others
};

// Returns the definition of the op. Its shape rule throws Error unless each list has as many
// arguments as Param and agrees with it in shape and dtype, LearningRate has one or as many, and so
// have the attributes that are lists.
OpDef MakeUpdateOpDef(UpdateOp op);

// Returns the piece of each parameter that the op updates. The shapes of all parameters are known.
std::vector<PartPiece> PiecesOf(const OpContext& context);
// Returns whether the only argument of an input slot is a shard of what the slot lists otherwise.
bool IsSharded(const OpContext& context, std::string_view slot);

// Returns the entry for parameter i of a list with one entry for all parameters or for each.
template <typename T>
T EntryFor(const std::vector<T>& list, size_t i) {
  return list.size() == 1 ? list[0] : list[i];
}

// Return the definition of an optional attribute; a bool is false by default.
AttrDef FloatAttr(StaticText name, float default_value, StaticText doc);
AttrDef BoolAttr(StaticText name, StaticText doc);
// Returns the definition of the attribute kIsFlatAttr.
AttrDef IsFlatAttr();

}  // namespace skiff
