// multiclass_nms3: multiclass_nms2 with numbers of boxes in place of LoDs.
//
// Its Out and Index have no LoD; NmsRoisNum says how many rows each image has. Where no box of any
// image stays, Out is [0, 6] and Index [0, 1].
//
// Source: PaddlePaddle 2.6's multiclass_nms3.
#include "operators/detection/kernels/multiclass_nms.h"

namespace skiff {

void RegisterMulticlassNms3(OpRegistry& registry) {
  RegisterMulticlassNmsForm(registry,
                            {.type = "multiclass_nms3", .has_index = true, .has_counts = true});
}

}  // namespace skiff
