// Repeating a tensor along its axes, for expand, expand_v2, expand_as_v2 and tile.
#pragma once

#include <functional>
#include <vector>

#include "framework/op/registry.h"

namespace skiff {

// Out is X, seen with the dims `dims`, repeated times[i] times along axis i. Both have the rank of
// Out. A dim of X may be -1; the same dim of Out is then unknown.
struct Repetition {
  Shape dims;
  Shape times;
  // The dims of Out that are known although `dims` isn't; -1 for others.
  Shape out;
};

struct RepeatFacts {
  StaticText type;
  StaticText doc;
  // The attribute (a list of ints) that says how often to repeat, and the slots that may give it,
  // if there are any.
  StaticText attr;
  StaticText attr_doc;
  StaticText tensor_slot;
  StaticText tensor_list_slot;
  // An input whose shape `repetition` reads; empty: none.
  SlotDef shape_slot;
  // Returns the repetition that the attribute and the shape of X ask for. Throws Error if they
  // don't fit.
  std::function<Repetition(const OpContext&, const Shape& x, const std::vector<int64_t>& values)>
      repetition;
};

// Returns `x` with leading dims of 1, so that `rank` is the rank.
Shape WithLeadingOnes(const Shape& x, int rank);

// Registers the op (X -> Out) and <type>_grad with their kernels.
void AddRepeatOps(OpRegistry& registry, const RepeatFacts& facts);

}  // namespace skiff
