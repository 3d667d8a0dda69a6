// unfold: what a sliding window sees of images, as columns (im2col).
//
//   Y[n, (c · KH + i) · KW + j, y · OW + x] =
//     X[n, c, y · s_h - top + i · d_h, x · s_w - left + j · d_w], 0 outside of the image
//   OH = (H + top + bottom - d_h · (KH - 1) - 1) / s_h + 1, OW likewise
//
// Source: Fluid's unfold (PaddlePaddle 2.6), PyTorch's Unfold.
//
// Gradient: each element of X gets the sum of the gradients of its places in Y (fold).
#include <utility>

#include "framework/op/grad.h"
#include "operators/nn/convolution/unfolding.h"

namespace skiff {

void RegisterUnfold(OpRegistry& registry) {
  OpDef def = {.type = "unfold",
               .doc =
                   "Y[n, (c * KH + i) * KW + j, y * OW + x] = what tap (i, j) of a window at row y "
                   "and column x of its places sees of X[n, c].",
               .inputs = {{.name = "X", .doc = "Images, [N, C, H, W]."}},
               .outputs = {{.name = "Y", .doc = "[N, C * KH * KW, OH * OW]."}},
               .attrs = UnfoldingAttrs(),
               .infer = [](OpContext& context) {
                 context.SetOutputLike("Y", "X");
                 context.SetOutput("Y", ColumnsShape(ParseUnfold(context)),
                                   context.Input("X").dtype);
               }};
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {ForShape("X"), "Y@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD of a pixel: the sum of Y@GRAD where a window saw it.";
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  AddUnfoldingKernels(registry, "unfold");
}

}  // namespace skiff
