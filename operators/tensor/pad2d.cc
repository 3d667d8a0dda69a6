// pad2d: adds a border of paddings = [top, bottom, left, right] pixels to images.
//
//   constant: the border is pad_value
//   edge:     a border pixel is the nearest pixel of the image
//   reflect:  the image is mirrored at its first and last row and column, which are not repeated
//
// Source: Fluid 1.x's pad2d (PaddlePaddle 2.6 still defines the op, but has no kernel for it). A
// border of `reflect` must be smaller than the image, and `edge` needs a pixel to repeat. Gradient:
// each pixel of X@GRAD is the sum of Out@GRAD over its copies.
#include "operators/tensor/kernels/image_padding.h"

namespace skiff {

void RegisterPad2d(OpRegistry& registry) {
  AddImagePadOps(registry, {.type = "pad2d",
                            .x_doc = "Images, [n, c, h, w] or [n, h, w, c].",
                            .paddings_doc = "Pixels of border: [top, bottom, left, right].",
                            .value_attr = "pad_value",
                            .modes = {"constant", "reflect", "edge"},
                            .formats = {"NCHW", "NHWC"}});
}

}  // namespace skiff
