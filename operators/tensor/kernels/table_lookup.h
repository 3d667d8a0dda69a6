// lookup_table and lookup_table_v2, which read rows of an embedding table by id, and their
// gradients.
#pragma once

#include <vector>

#include "framework/op/registry.h"

namespace skiff {

struct LookupFacts {
  StaticText type;
  StaticText doc;
  StaticText ids_doc;
  // Whether the last dim of Ids must be 1 and is ignored.
  bool ids_are_columns = false;
  // The attributes that only this op has.
  std::vector<AttrDef> more_attrs = {};
};

// Registers the op and <type>_grad with their kernels.
void AddLookupOps(OpRegistry& registry, const LookupFacts& facts);

}  // namespace skiff
