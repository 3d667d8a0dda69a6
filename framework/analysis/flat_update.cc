#include "framework/analysis/flat_update.h"

#include <algorithm>

namespace skiff {

bool TakesFlatLists(const OpDef* def) {
  return def != nullptr && def->update.has_value() && def->FindAttr(kIsFlatAttr) != nullptr;
}

bool IsFlatUpdate(const OpDef* def, const Op& op) {
  return TakesFlatLists(def) && op.Attr<bool>(kIsFlatAttr, false);
}

bool UpdatesParameters(const Op& op) { return !op.Output("ParamOut").empty(); }

int64_t FlatAlignment(int64_t wanted, int64_t largest_bytes, DType dtype) {
  const int64_t element_bytes = SizeOf(dtype);
  return largest_bytes > element_bytes ? std::max(wanted, element_bytes) : element_bytes;
}

}  // namespace skiff
