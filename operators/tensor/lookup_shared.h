// Rows of an embedding table by id: lookup_table and lookup_table_v2 with their gradients.
#pragma once

#include <string>
#include <vector>

#include "framework/op/registry.h"

namespace skiff {

struct LookupFacts {
  std::string type;
  std::string doc;
  std::string ids_doc;
  // The last dim of Ids is 1 and doesn't count.
  bool ids_are_columns = false;
  // Besides those that both ops have.
  std::vector<AttrDef> more_attrs = {};
};

// Registers the op and <type>_grad with their kernels.
void AddLookupOps(OpRegistry& registry, const LookupFacts& facts);

}  // namespace skiff
