// fold: sums columns into images (col2im): each pixel is the sum over the windows that see it.
//
//   Y[n, c, y · s_h - top + i · d_h, x · s_w - left + j · d_w] +=
//     X[n, (c · KH + i) · KW + j, y · OW + x], where that is a pixel of Y
//   OH = (output_sizes[0] + top + bottom - d_h · (KH - 1) - 1) / s_h + 1, OW likewise
//
// Source: Fluid's fold (PaddlePaddle 2.6), PyTorch's Fold. Fluid's takes even paddings alone.
//
// Gradient: X@GRAD are the columns of Y@GRAD (unfold).
#include <utility>

#include "framework/op/grad.h"
#include "operators/nn/convolution/unfolding.h"

namespace skiff {

void RegisterFold(OpRegistry& registry) {
  OpDef def = {.type = "fold",
               .doc =
                   "Each pixel of Y = the sum of X[n, (c * KH + i) * KW + j, y * OW + x] over the "
                   "windows, at row y and column x of their places, whose tap (i, j) is on it.",
               .inputs = {{.name = "X", .doc = "[N, C * KH * KW, OH * OW]."}},
               .outputs = {{.name = "Y", .doc = "Images, [N, C, H, W]."}},
               .attrs = UnfoldingAttrs(),
               .infer = [](OpContext& context) {
                 context.SetOutputLike("Y", "X");
                 context.SetOutput(
                     "Y",
                     ShapeOf(ParseFold(context).input, ChannelOrder::kFirst, VolumeAxes::kImage),
                     context.Input("X").dtype);
               }};
  def.attrs.insert(def.attrs.begin(), {.name = "output_sizes",
                                       .type = AttrType::kInts,
                                       .default_value = std::nullopt,
                                       .doc = "Height and width of the images."});
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {ForShape("X"), "Y@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD = what each window sees of Y@GRAD.";
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  AddUnfoldingKernels(registry, "fold");
}

}  // namespace skiff
