// A tensor repeated along its axes: what expand, expand_v2 and tile share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/op/registry.h"

namespace skiff {

// Out = X with the dims `dims`, repeated times[i] times along axis i. Both have the rank of Out; a
// dim of X may be -1, and then is unknown in Out.
struct Repetition {
  Shape dims;
  Shape times;
  // Of Out, where it is known though dims isn't; -1 elsewhere.
  Shape out;
};

struct RepeatFacts {
  std::string type;
  std::string doc;
  // The attribute (a list of ints) that says how often, and the slots that Fluid reads it from at
  // run time.
  std::string attr;
  std::string attr_doc;
  std::string tensor_slot;
  std::string tensor_list_slot;
  // What attribute and shape of X ask for. Error if they don't fit.
  std::function<Repetition(const OpContext&, const Shape& x, const std::vector<int64_t>& values)>
      repetition;
};

// `x` with dims of 1 in front of it, of rank `rank`.
Shape WithLeadingOnes(const Shape& x, int rank);

// Registers the op (X -> Out) and <type>_grad with their kernels.
void AddRepeatOps(OpRegistry& registry, const RepeatFacts& facts);

}  // namespace skiff
