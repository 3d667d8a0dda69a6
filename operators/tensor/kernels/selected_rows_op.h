// Common code of the ops whose X is always selected rows.
#pragma once

#include "framework/op/registry.h"

namespace skiff {

// Returns the definition of an op of selected rows X, without gradient, outputs and shape rule.
OpDef RowOpDef(StaticText type, StaticText doc);

// Throws Error that names the op unless X is selected rows.
void CheckSelectedRows(const OpContext& context);

}  // namespace skiff
