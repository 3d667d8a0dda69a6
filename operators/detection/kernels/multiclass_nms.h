// The ops multiclass_nms, multiclass_nms2 and multiclass_nms3, which are one op with more and more
// outputs.
#pragma once

#include "framework/base/static_text.h"
#include "framework/op/registry.h"

namespace skiff {

struct MulticlassNmsForm {
  StaticText type;
  bool has_index = false;
  // Whether the numbers of boxes of images are arguments of their own, not LoDs.
  bool has_counts = false;
};

// Registers the op of this form, with its kernels.
void RegisterMulticlassNmsForm(OpRegistry& registry, const MulticlassNmsForm& form);

}  // namespace skiff
