// The ops that pick slices of a tensor along one axis by a vector of indices, and their gradients.
#pragma once

#include "framework/op/registry.h"

namespace skiff {

// Out[..., i, ...] = X[..., Index[i], ...] along the axis that the attribute names.
struct TakeFacts {
  StaticText type;
  StaticText doc;
  StaticText axis_attr;
  // The differences between Fluid's ops.
  bool negative_axis = false;  // the axis may count from the back
  bool scalar_index = false;   // Index may be a scalar, which drops the axis
  bool axis_slot = false;      // a slot Axis may give the attribute
};

// Registers the op and <type>_grad with their kernels. Kernels throw Error at run time for an index
// outside [0, extent of X along the axis).
void AddTakeOps(OpRegistry& registry, const TakeFacts& facts);

}  // namespace skiff
