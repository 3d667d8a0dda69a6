// multiclass_nms: the boxes of each class that stay of those that overlap.
//
// Of each class but background_label, the boxes whose scores are above score_threshold count, at
// most nms_top_k of the highest. The best box stays. Then each next one stays unless it overlaps
// one that stays by more than the threshold, nms_threshold at first; nms_eta below 1 multiplies a
// threshold above 0.5 after each box that stays. The overlap is the shared area / the area of both.
// An overlap that is NaN (of boxes without area or with coordinates that are NaN) isn't allowed,
// and a score that is NaN doesn't count. Of an image, at most keep_top_k boxes stay, those of the
// highest scores. Boxes of pixels (normalized = false) include their last row and column.
//
// Order: images, in them labels, ascending; of a label scores, descending. Of equal scores (as
// float32), the smaller position comes first, and the smaller label stays first. Where classes have
// boxes of their own (Scores is [M, C]), the boxes of a label are in the order of their positions.
//
// Where no box of any image stays, Out is [1, 1], -1, a sequence of one row.
//
// A batch without images is refused.
//
// Source: Fluid's multiclass_nms (PaddlePaddle 2.6). Fluid's takes polygons, too, as boxes of 8 to
// 32 numbers.
#include "operators/detection/kernels/multiclass_nms.h"

namespace skiff {

void RegisterMulticlassNms(OpRegistry& registry) {
  RegisterMulticlassNmsForm(registry, {.type = "multiclass_nms"});
}

}  // namespace skiff
