// A transposed convolution is the gradient of a convolution with respect to its input, so all three
// passes are those of ColumnConvolution with other names: forward is kBackwardData, the gradient of
// Input is kForward, and in the gradient of Filter, Input takes the part of the output gradient.
#include "operators/nn/convolution/transposed_convolution.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/op/arguments.h"
#include "framework/op/grad.h"
#include "operators/nn/convolution/convolution_gradient.h"

namespace skiff {
namespace {

// Returns the values of an attribute, one per axis, or none if it is unset.
std::vector<int64_t> OptionalSizes(const OpContext& context, const char* name, VolumeAxes axes) {
  std::vector<int64_t> values = context.IntsAttr(name);
  SKIFF_ENFORCE(values.empty() || values.size() == AxisCount(axes), kInvalidArgument,
                context.op().type, ": ", name, " = [", Join(values, ", "), "], expected ",
                AxisCount(axes), " values or none");
  for (const int64_t value : values) {
    SKIFF_ENFORCE(value >= 0 && value <= std::numeric_limits<int32_t>::max(), kInvalidArgument,
                  context.op().type, ": ", name, " = [", Join(values, ", "),
                  "], expected values from 0 to ", std::numeric_limits<int32_t>::max());
  }
  return values;
}

// Returns the size of Output along an axis. A convolution of stride s maps s sizes of its input to
// the same output, so the size is ambiguous; output_size or output_padding chooses one of these,
// and the default is the smallest.
int64_t OutputSize(const OpContext& context, const VolumeWindow& window, VolumeAxes axes,
                   size_t axis, int64_t input) {
  const std::vector<int64_t> sizes = OptionalSizes(context, "output_size", axes);
  const std::vector<int64_t> paddings = OptionalSizes(context, "output_padding", axes);
  const size_t at = axis - FirstAxis(axes);  // in the attributes
  const char* name = kVolumeAxisNames[axis];
  if (input < 0 || window.kernel[axis] < 0) return sizes.empty() ? -1 : sizes[at];
  const int64_t least = MultiplyCounts(std::max<int64_t>(input - 1, 0), window.stride[axis]) -
                        window.pad_begin[axis] - window.pad_end[axis] + window.reach(axis);
  int64_t size = least;
  if (!sizes.empty()) {
    size = sizes[at];
    SKIFF_ENFORCE(size >= least && size < least + window.stride[axis], kInvalidArgument,
                  context.op().type, ": output_size = [", Join(sizes, ", "), "], expected ", least,
                  " to ", least + window.stride[axis] - 1, " for ", name);
  } else if (!paddings.empty()) {
    const int64_t limit = std::max(window.stride[axis], window.dilation[axis]);
    SKIFF_ENFORCE(paddings[at] < limit, kInvalidArgument, context.op().type, ": output_padding = [",
                  Join(paddings, ", "), "], expected 0 to ", limit - 1, " for ", name);
    size += paddings[at];
  }
  SKIFF_ENFORCE(size >= 0 || input == 0, kInvalidArgument, context.op().type, ": an output ", name,
                " of ", size, " for Input of shape ", context.Input("Input").shape,
                ", expected at least 0");
  return std::max<int64_t>(size, 0);
}

void Infer(OpContext& context, VolumeAxes axes) {
  const VolumeConvolution conv = ParseTransposedConvolution(context, axes);
  context.SetOutputLike("Output", "Input");
  context.SetOutput("Output", ShapeOf(conv.input, conv.order, axes), context.Input("Input").dtype);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context, VolumeAxes axes) {
  ColumnConvolution<T> transposed(ParseTransposedConvolution(context, axes),
                                  ConvolutionPass::kBackwardData, context);
  const In<T> input(context, "Input");
  const In<T> filter(context, "Filter");
  const Out<T> output(context, "Output");
  return MakeKernel([=, transposed = std::move(transposed)](const KernelContext& run) {
    transposed.BackwardData(run, input(run), filter(run), output(run));
  });
}

std::vector<AttrDef> Attributes(VolumeAxes axes) {
  const size_t count = AxisCount(axes);
  AttrDef format = VolumeOrderAttr("data_format", axes);
  format.default_value = std::string("NCHW");
  if (axes == VolumeAxes::kVolume) {
    format.doc = "NCHW or NHWC: where volumes have their channels; NCDHW and NDHWC mean the same.";
  }
  return {IntsAttrDef("strides", std::vector<int32_t>(count, 1), "Distance of the windows."),
          IntsAttrDef("paddings", std::vector<int32_t>(count, 0),
                      "Points cut off Output: one value per axis, or two, before and after."),
          IntsAttrDef("output_padding", {}, "Points added after the last window."),
          IntsAttrDef("output_size", {}, "The extents of Output."),
          PaddingAlgorithmAttr(),
          {.name = "groups",
           .type = AttrType::kInt,
           .default_value = int32_t{1},
           .doc = "Input channel c adds only to the output channels of its group."},
          IntsAttrDef("dilations", std::vector<int32_t>(count, 1),
                      "Distance of the filter's taps; 1 under SAME."),
          std::move(format)};
}

}  // namespace

VolumeConvolution ParseTransposedConvolution(const OpContext& context, VolumeAxes axes) {
  const std::string& type = context.op().type;
  VolumeConvolution conv;
  // Fluid names the axes of volumes like those of images: its layers write NCHW and NHWC.
  const std::string& format = context.Attr<std::string>("data_format");
  const bool names_image = format == "NCHW" || format == "NHWC";
  conv.order = ParseVolumeOrder(context, "data_format", names_image ? VolumeAxes::kImage : axes);
  conv.groups = context.IntAttr("groups");
  conv.output = VolumeOf(context, "Input", context.Input("Input").shape, conv.order, axes);
  const Shape& filter = context.Input("Filter").shape;
  SKIFF_ENFORCE(filter.rank() == static_cast<int>(AxisCount(axes)) + 2, kInvalidArgument, type,
                ": Filter of shape ", filter,
                ", expected [input channels, output channels / groups] and the kernel's extents");
  VolumeExtents kernel{1, 1, 1};
  for (int i = 2; i < filter.rank(); ++i) {
    SKIFF_ENFORCE(filter[i] != 0, kInvalidArgument, type, ": Filter of shape ", filter,
                  ", expected extents of at least 1");
    kernel[FirstAxis(axes) + static_cast<size_t>(i - 2)] = filter[i];
  }
  conv.output.channels =
      MergeDims(conv.output.channels, filter[0],
                StrCat(type, ": the channels of Input and the first dim of Filter ", filter));
  SKIFF_ENFORCE(
      conv.groups >= 1 && (conv.output.channels == -1 || conv.output.channels % conv.groups == 0),
      kInvalidArgument, type, ": groups = ", conv.groups, ", expected a divisor of the ",
      conv.output.channels, " input channels");
  SKIFF_ENFORCE(context.Input("Filter").dtype == context.Input("Input").dtype, kInvalidArgument,
                type, ": Filter is ", context.Input("Filter").dtype, ", expected that of Input, ",
                context.Input("Input").dtype);
  // Paddings of SAME follow from the size of Input, as in Fluid.
  conv.window = ParseVolumeWindow(context, axes, kernel,
                                  ParseVolumeExtents(context, "dilations", axes), conv.output.size);
  conv.input = {.batch = conv.output.batch,
                .channels = filter[1] == -1 ? -1 : MultiplyCounts(filter[1], conv.groups)};
  for (size_t axis = FirstAxis(axes); axis < 3; ++axis) {
    conv.input.size[axis] = OutputSize(context, conv.window, axes, axis, conv.output.size[axis]);
  }
  return conv;
}

void RegisterTransposedConvolution(OpRegistry& registry, StaticText type, VolumeAxes axes) {
  const FlopRule flop = [axes](const OpContext& context) {
    return ParseTransposedConvolution(context, axes).flop();
  };
  OpDef def;
  def.type = type;
  def.doc = StrCat(
      "Output[n, o, p * stride + t * dilation - padding] += Input[n, c, p] * Filter[c, o, t]. "
      "Fluid's ",
      type, ".");
  def.inputs = {
      {.name = "Input", .doc = "[N, C, extents] or [N, extents, C] (data_format)."},
      {.name = "Filter", .doc = "[C, output channels / groups, extents] in either format."}};
  def.outputs = {{.name = "Output", .doc = "Larger than Input where strides are above 1."}};
  def.attrs = Attributes(axes);
  def.infer = [axes](OpContext& context) { Infer(context, axes); };
  def.precision = Precision::kLow;
  def.flop = flop;
  OpDef grad = GradientOf(&def, {"Input", "Filter", "Output@GRAD"}, {"Input@GRAD", "Filter@GRAD"});
  grad.doc = StrCat("The gradients of ", type,
                    ": Input@GRAD is the convolution of Output@GRAD with Filter, Filter@GRAD the "
                    "correlation of Output@GRAD with Input.");
  grad.flop = GradFlop(flop, {"Input@GRAD", "Filter@GRAD"});
  registry.Add(std::move(def));
  registry.Add(std::move(grad));

  registry.AddCpuKernels<float, double>(
      type, [axes]<typename T>(PrepareContext& context) { return Prepare<T>(context, axes); });
  registry.AddCpuKernels<float, double>(
      StrCat(type, "_grad"), [axes]<typename T>(PrepareContext& context) {
        return PrepareConvolutionGrad<T>(context, ParseTransposedConvolution(context, axes),
                                         ConvolutionPass::kForward);
      });
}

}  // namespace skiff
