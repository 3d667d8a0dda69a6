// pad3d: adds a border of paddings = [left, right, top, bottom, front, back] pixels to images of
// several planes.
//
//   constant:  the border is `value`
//   reflect:   the image is mirrored at its first and last pixel, which are not repeated
//   replicate: a border pixel is the nearest pixel of the image
//   circular:  the image is repeated endlessly
//
// Source: PaddlePaddle's pad3d, which is its F.pad for images of any rank (those of one row or one
// plane have extents of 1). A border of `reflect` must be smaller than the image, and the other
// copies need a pixel to repeat. PaddlePaddle also takes negative numbers. Gradient: each pixel of
// X@GRAD is the sum of Out@GRAD over its copies.
#include "operators/tensor/kernels/image_padding.h"

namespace skiff {

void RegisterPad3d(OpRegistry& registry) {
  AddImagePadOps(registry,
                 {.type = "pad3d",
                  .x_doc = "Images, [n, c, d, h, w] or [n, d, h, w, c].",
                  .paddings_doc = "Pixels of border: [left, right, top, bottom, front, back].",
                  .value_attr = "value",
                  .modes = {"constant", "reflect", "replicate", "circular"},
                  .formats = {"NCDHW", "NDHWC"}});
}

}  // namespace skiff
