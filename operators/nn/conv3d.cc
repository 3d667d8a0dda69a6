// conv3d: correlation of volumes with filters.
//
//   Output[n, o, p] = sum over channels c of o's group and taps t of
//       Filter[o, c, t] · Input[n, c, p · stride + t · dilation - padding], p and t being (z, y, x)
//
// Source: Fluid's conv3d (PaddlePaddle 2.6). All three passes are matrix products with im2col
// columns (kernels/column_convolution.h).
#include <utility>
#include <vector>

#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/nn/convolution/convolution_gradient.h"

namespace skiff {
namespace {

constexpr VolumeAxes kAxes = VolumeAxes::kVolume;

void Infer(OpContext& context) {
  const VolumeConvolution conv = ParseVolumeConvolution(context);
  context.SetOutputLike("Output", "Input");
  context.SetOutput("Output", ShapeOf(conv.output, conv.order, kAxes),
                    context.Input("Input").dtype);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  ColumnConvolution<T> forward(ParseVolumeConvolution(context), ConvolutionPass::kForward, context);
  const In<T> input(context, "Input");
  const In<T> filter(context, "Filter");
  const Out<T> output(context, "Output");
  return MakeKernel([=, forward = std::move(forward)](const KernelContext& run) {
    forward.Forward(run, input(run), filter(run), output(run));
  });
}

std::vector<AttrDef> Attributes() {
  return {IntsAttrDef("strides", {1, 1, 1}, "Steps of the window, for depth, height and width."),
          IntsAttrDef("paddings", {0, 0, 0},
                      "Zeros around the input: one value per axis, or two, before and after."),
          PaddingAlgorithmAttr(),
          {.name = "groups",
           .type = AttrType::kInt,
           .default_value = int32_t{1},
           .doc = "Output channel o sees only the input channels of its group."},
          IntsAttrDef("dilations", {1, 1, 1}, "Distance of the filter's taps; 1 under SAME."),
          VolumeOrderAttr("data_format", kAxes)};
}

double Flop(const OpContext& context) { return ParseVolumeConvolution(context).flop(); }

}  // namespace

void RegisterConv3d(OpRegistry& registry) {
  OpDef def = {
      .type = "conv3d",
      .doc =
          "Output[n, o, p] = sum over channels c of o's group and taps t of Filter[o, c, t] * "
          "Input[n, c, p * stride + t * dilation - padding], where Input is 0 outside. Fluid's "
          "conv3d.",
      .inputs = {{.name = "Input", .doc = "Volumes, [N, C, D, H, W] or [N, D, H, W, C]."},
                 {.name = "Filter",
                  .doc = "[output channels, C / groups, depth, height, width] in either format."}},
      .outputs = {{.name = "Output", .doc = "Volumes with as many channels as there are filters."}},
      .attrs = Attributes(),
      .infer = Infer,
      .flop = Flop};
  def.precision = Precision::kLow;
  OpDef grad = GradientOf(&def, {"Input", "Filter", "Output@GRAD"}, {"Input@GRAD", "Filter@GRAD"});
  grad.doc =
      "The gradients of conv3d: Input@GRAD is the transposed convolution of Output@GRAD with "
      "Filter, Filter@GRAD the correlation of Input with Output@GRAD.";
  grad.flop = GradFlop(Flop, {"Input@GRAD", "Filter@GRAD"});
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  registry.AddCpuKernels<float, double>(
      "conv3d", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>("conv3d_grad", []<typename T>(PrepareContext& context) {
    return PrepareConvolutionGrad<T>(context, ParseVolumeConvolution(context),
                                     ConvolutionPass::kBackwardData);
  });
}

}  // namespace skiff
