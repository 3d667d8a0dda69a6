// What all ops that update parameters have in common: slots, attributes and the shape rule.
//
// An update op takes the tensors of any number of parameters, argument i of each list (Param, Grad,
// the states) being parameter i's. Fluid's own programs give it one; passes merge them
// (merge_optimizer), so that one op updates all parameters of a kind.
//
// Before the formula of the optimizer each gradient becomes, in this order of roundings,
//   g = Grad * rescale_grad * GradScale, then g + regularization_coeff * Param with "l2_decay",
//   g + regularization_coeff * sign(Param) with "l1_decay".
// With SkipUpdate true no variable changes.
//
// With multi_precision parameters are float16 or bfloat16, and each has master weights of float32
// (MasterParam), which are what the formula and g read and move, norms included; states and scalars
// are float32 then, and either all gradients or none. ParamOut is MasterParamOut as the op cast
// rounds it: to the nearest number, the even one of two. What an update leaves alone (SkipUpdate,
// rows) stays in both.
//
// The gradient of a parameter alone, not of one in a list, may be selected rows: repeated rows are
// added up first, in order of occurrence, and rows that aren't there have a gradient of 0, or are
// left alone (SparseRule).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "framework/op/kernel.h"
#include "framework/op/registry.h"

namespace skiff {

// What a sparse gradient does to the rows that it lacks.
enum class SparseRule {
  kAllRows,      // they are updated by a gradient of 0
  kTouchedRows,  // nothing
  kLazyMode,     // nothing if the attribute lazy_mode is true, else as kAllRows
};

// What one update op has besides the common parts.
struct UpdateOp {
  std::string type;
  std::string doc;

  // A state of a parameter: an input, and the output that is its next value. A scalar may have none
  // (""), and may leave it unconnected.
  struct State {
    std::string input;
    std::string output;
    std::string doc;
    std::string factor;  // of a scalar that the program may move on: of UpdateRule::Power
  };
  std::vector<State> states;            // of Param's shape; float32 where Param has a master copy
  std::vector<State> scalars;           // of one element a parameter, float32 or of Param's dtype
  std::vector<SlotDef> shared_scalars;  // one element for all parameters
  std::vector<AttrDef> attrs;           // replace common ones of the same name
  std::vector<std::string> list_attrs;  // those that are one number, or one a parameter
  std::string merged_as;                // of UpdateRule
  SparseRule sparse_rule = SparseRule::kAllRows;
};

// The definition of the op. Its shape rule throws an Error unless all lists have as many arguments
// as Param (LearningRate: or one) and agree with it in shape and dtype, and the attributes that are
// lists have one entry or as many.
OpDef MakeUpdateOpDef(UpdateOp op);

// Entry i of an attribute that is a list of one number for all, or one a parameter.
template <typename T>
T EntryFor(const std::vector<T>& list, size_t i) {
  return list.size() == 1 ? list[0] : list[i];
}

// An attribute of type float with a default.
AttrDef FloatAttr(std::string name, float default_value, std::string doc);
AttrDef BoolAttr(std::string name, std::string doc);
// kIsFlatAttr.
AttrDef IsFlatAttr();

}  // namespace skiff
