// one_hot and one_hot_v2: rows of zeros with a single 1.
#pragma once

#include "framework/op/registry.h"

namespace skiff {

struct OneHotFacts {
  StaticText type;
  StaticText doc;
  StaticText x_doc;
  // Whether the last dim of X must be 1 and is ignored.
  bool ids_are_columns = false;
};

// Registers the op with its kernels. When the op runs, it throws Error for an index outside [0,
// depth) unless the attribute allow_out_of_range is true.
void AddOneHotOp(OpRegistry& registry, const OneHotFacts& facts);

}  // namespace skiff
