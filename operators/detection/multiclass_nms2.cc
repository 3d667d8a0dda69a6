// multiclass_nms2: multiclass_nms, which has the formula, with the positions of the boxes that
// stay.
//
// Where no box of any image stays, Out is [0, 6] and Index [0, 1], with a sequence without rows for
// each image.
//
// A batch without images is refused.
//
// Source: Fluid's multiclass_nms2 (PaddlePaddle 2.6).
#include "operators/detection/kernels/multiclass_nms.h"

namespace skiff {

void RegisterMulticlassNms2(OpRegistry& registry) {
  RegisterMulticlassNmsForm(registry, {.type = "multiclass_nms2", .has_index = true});
}

}  // namespace skiff
