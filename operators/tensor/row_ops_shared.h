// What the ops share whose X is always selected rows.
#pragma once

#include <string>

#include "framework/op/registry.h"

namespace skiff {

// An op of selected rows X, without a gradient; outputs and shape rule are missing.
OpDef RowOpDef(std::string type, std::string doc);

// Error, naming the op, unless X is selected rows.
void CheckSelectedRows(const OpContext& context);

}  // namespace skiff
