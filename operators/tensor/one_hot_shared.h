// Rows of zeros with a one: one_hot and one_hot_v2.
#pragma once

#include <string>

#include "framework/op/registry.h"

namespace skiff {

struct OneHotFacts {
  std::string type;
  std::string doc;
  std::string x_doc;
  // The last dim of X is 1 and doesn't count.
  bool ids_are_columns = false;
};

// Registers the op with its kernels. An index outside [0, depth) is an Error when the op runs,
// unless `allow_out_of_range` is set.
void AddOneHotOp(OpRegistry& registry, const OneHotFacts& facts);

}  // namespace skiff
