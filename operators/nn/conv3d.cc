// conv3d: correlation of volumes with filters.
//
//   Output[n, o, p] = sum over channels c of o's group and taps t of
//       Filter[o, c, t] · Input[n, c, p · stride + t · dilation - padding], p and t being (z, y, x)
//
// Source: Fluid's conv3d (PaddlePaddle 2.6). All three passes are matrix products with im2col
// columns (kernels/column_convolution.h).
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/nn/kernels/convolution_gradient.h"

namespace skiff {
namespace {

constexpr VolumeAxes kAxes = VolumeAxes::kVolume;

VolumeConvolution ParseConvolution(const OpContext& context) {
  const std::string& type = context.op().type;
  VolumeConvolution conv;
  conv.order = ParseVolumeOrder(context, "data_format", kAxes);
  conv.groups = context.IntAttr("groups");
  conv.input = VolumeOf(context, "Input", context.Input("Input").shape, conv.order, kAxes);
  const Shape& filter = context.Input("Filter").shape;
  SKIFF_ENFORCE(filter.rank() == 5, kInvalidArgument, type, ": Filter of shape ", filter,
                ", expected [output channels, input channels / groups, depth, height, width]");
  SKIFF_ENFORCE(filter[2] != 0 && filter[3] != 0 && filter[4] != 0, kInvalidArgument, type,
                ": Filter of shape ", filter, ", expected extents of at least 1");
  SKIFF_ENFORCE(conv.groups >= 1 && (filter[0] == -1 || filter[0] % conv.groups == 0),
                kInvalidArgument, type, ": groups = ", conv.groups, ", expected a divisor of the ",
                filter[0], " output channels");
  const int64_t channels = filter[1] == -1 ? -1 : MultiplyCounts(filter[1], conv.groups);
  SKIFF_ENFORCE(conv.input.channels == -1 || channels == -1 || conv.input.channels == channels,
                kInvalidArgument, type, ": Input has ", conv.input.channels, " channels, expected ",
                channels, " for Filter of shape ", filter, " and groups = ", conv.groups);
  SKIFF_ENFORCE(context.Input("Filter").dtype == context.Input("Input").dtype, kInvalidArgument,
                type, ": Filter is ", context.Input("Filter").dtype, ", expected that of Input, ",
                context.Input("Input").dtype);
  // The shape rule also runs while a program is built, with dims that are still unknown.
  if (conv.input.channels == -1) conv.input.channels = channels;
  conv.window = ParseVolumeWindow(context, kAxes, {filter[2], filter[3], filter[4]},
                                  ParseVolumeExtents(context, "dilations", kAxes), conv.input.size);
  conv.output = {.batch = conv.input.batch, .channels = filter[0]};
  for (size_t axis = 0; axis < 3; ++axis) {
    conv.output.size[axis] = VolumeWindowCount(context, conv.window, axis, conv.input.size[axis]);
  }
  return conv;
}

void Infer(OpContext& context) {
  const VolumeConvolution conv = ParseConvolution(context);
  context.SetOutputLike("Output", "Input");
  context.SetOutput("Output", ShapeOf(conv.output, conv.order, kAxes),
                    context.Input("Input").dtype);
}

void InferGrad(OpContext& context) {
  const VolumeConvolution conv = ParseConvolution(context);
  CheckInputLike(context, "Output@GRAD", ShapeOf(conv.output, conv.order, kAxes),
                 context.Input("Input").dtype);
  context.SetOutputLike("Input@GRAD", "Input");
  context.SetOutputLike("Filter@GRAD", "Filter");
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  ColumnConvolution<T> forward(ParseConvolution(context), ConvolutionPass::kForward, context);
  const int input = context.InputIndex("Input");
  const int filter = context.InputIndex("Filter");
  const int output = context.OutputIndex("Output");
  return MakeKernel([=, forward = std::move(forward)](const KernelContext& run) {
    forward.Forward(run, run.input(input).data<T>(), run.input(filter).data<T>(),
                    run.output(output).data<T>());
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

double Flop(const OpContext& context) { return ParseConvolution(context).flop(); }

}  // namespace

void RegisterConv3d(OpRegistry& registry) {
  registry.Add(
      {.type = "conv3d",
       .doc = "Output[n, o, p] = sum over channels c of o's group and taps t of Filter[o, c, t] * "
              "Input[n, c, p * stride + t * dilation - padding], where Input is 0 outside. Fluid's "
              "conv3d.",
       .inputs = {{.name = "Input", .doc = "Volumes, [N, C, D, H, W] or [N, D, H, W, C]."},
                  {.name = "Filter",
                   .doc = "[output channels, C / groups, depth, height, width] in either format."}},
       .outputs = {{.name = "Output",
                    .doc = "Volumes with as many channels as there are filters."}},
       .attrs = Attributes(),
       .infer = Infer,
       .grad =
           GradOp("conv3d_grad", {"Input", "Filter", "Output@GRAD"}, {"Input@GRAD", "Filter@GRAD"}),
       .flop = Flop});
  registry.Add(
      {.type = "conv3d_grad",
       .doc = "The gradients of conv3d: Input@GRAD is the transposed convolution of Output@GRAD "
              "with Filter, Filter@GRAD the correlation of Input with Output@GRAD.",
       .inputs = {{.name = "Input", .doc = "Of conv3d."},
                  {.name = "Filter", .doc = "Of conv3d."},
                  {.name = "Output@GRAD", .doc = "The gradient of Output."}},
       .outputs = {{.name = "Input@GRAD", .doc = "Like Input.", .dispensable = true},
                   {.name = "Filter@GRAD", .doc = "Like Filter.", .dispensable = true}},
       .attrs = Attributes(),
       .infer = InferGrad,
       .no_gradient_reason = "second derivatives of convolutions are not provided",
       .flop = GradFlop(Flop, {"Input@GRAD", "Filter@GRAD"})});
  registry.AddCpuKernels<float, double>(
      "conv3d", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>("conv3d_grad", []<typename T>(PrepareContext& context) {
    return PrepareConvolutionGrad<T>(context, ParseConvolution(context),
                                     ConvolutionPass::kBackwardData);
  });
}

}  // namespace skiff
