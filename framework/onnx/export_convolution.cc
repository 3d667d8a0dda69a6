// Convolutions and transposed convolutions of images and volumes.
#include <algorithm>
#include <string>
#include <vector>

#include "framework/onnx/compositions.h"
#include "framework/onnx/exporters.h"
#include "framework/onnx/image_exports.h"

namespace skiff::onnx_export {
namespace {

struct ConvolutionParts {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  Borders borders;
  bool is_last = false;
  int64_t rank = 0;
};

ConvolutionParts PartsOf(OpExport& op) {
  ConvolutionParts parts;
  const Shape& input = op.ShapeOf("Input");
  const Shape& filter = op.ShapeOf("Filter");
  parts.rank = input.rank();
  parts.is_last = ChannelsAreLast(op.Text("data_format"));
  for (int axis = 2; axis < filter.rank(); ++axis) parts.kernel.push_back(filter[axis]);
  parts.strides = op.Ints("strides");
  parts.dilations = op.Ints("dilations");
  // Under SAME, windows are not dilated.
  if (op.Text("padding_algorithm") == "SAME") std::ranges::fill(parts.dilations, 1);
  parts.borders = BordersOf(op, ExtentsOf(input, parts.is_last), parts.kernel, parts.strides);
  return parts;
}

std::string ImagesOf(OpExport& op, const ConvolutionParts& parts) {
  const std::string x = op.In("Input");
  return parts.is_last ? Transposed(op, x, ChannelsFirst(parts.rank)) : x;
}

NodeAttrs CommonAttrs(OpExport& op, const ConvolutionParts& parts) {
  NodeAttrs attrs = {{"strides", parts.strides},
                     {"dilations", parts.dilations},
                     {"group", op.Int("groups")},
                     {"pads", parts.borders.Pads()}};
  if (std::ranges::count(parts.kernel, -1) == 0) attrs.push_back({"kernel_shape", parts.kernel});
  return attrs;
}

std::string ConvolutionOf(OpExport& op, const ConvolutionParts& parts) {
  return op.Node("Conv", {ImagesOf(op, parts), op.In("Filter")}, CommonAttrs(op, parts));
}

std::string InOrder(OpExport& op, const ConvolutionParts& parts, const std::string& y) {
  return parts.is_last ? Transposed(op, y, ChannelsLast(parts.rank)) : y;
}

void Convolution(OpExport& op) {
  const ConvolutionParts parts = PartsOf(op);
  op.Set("Output", InOrder(op, parts, ConvolutionOf(op, parts)));
}

void ConvolutionBatchNormAct(OpExport& op) {
  const ConvolutionParts parts = PartsOf(op);
  const std::string normal = BatchNormOf(op, "Input", ConvolutionOf(op, parts), "NCHW");
  std::string y = InOrder(op, parts, normal);
  if (op.Has("Z")) y = op.Node("Add", {y, op.In("Z")});
  op.Set("Output", op.Text("act_type") == "relu" ? op.Node("Relu", {y}) : y);
}

// Returns how many points are added after the last window.
std::vector<int64_t> OutputPadding(OpExport& op, const ConvolutionParts& parts) {
  const std::vector<int64_t> sizes = op.Ints("output_size");
  const std::vector<int64_t> given = op.Ints("output_padding");
  if (sizes.empty()) return given;
  const std::vector<int64_t> extents = ExtentsOf(op.ShapeOf("Input"), parts.is_last);
  std::vector<int64_t> padding;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (extents[i] < 0 || parts.kernel[i] < 0) {
      Refuse("output_size is set, and the size of Input is unknown");
    }
    const int64_t reach = parts.dilations[i] * (parts.kernel[i] - 1) + 1;
    const int64_t least = (extents[i] - 1) * parts.strides[i] - parts.borders.before[i] -
                          parts.borders.after[i] + reach;
    padding.push_back(sizes[i] - least);
  }
  return padding;
}

void TransposedConvolution(OpExport& op) {
  const ConvolutionParts parts = PartsOf(op);
  if (op.Text("padding_algorithm") == "SAME") Refuse("padding_algorithm = \"SAME\"");
  NodeAttrs attrs = CommonAttrs(op, parts);
  const std::vector<int64_t> padding = OutputPadding(op, parts);
  if (!padding.empty()) attrs.push_back({"output_padding", padding});
  const std::string y = op.Node("ConvTranspose", {ImagesOf(op, parts), op.In("Filter")}, attrs);
  op.Set("Output", InOrder(op, parts, y));
}

// Returns the borders that make ceil(extent / stride) windows, as even as can be.
void PadToSame(const std::vector<int64_t>& extents, const std::vector<int64_t>& kernel,
               const std::vector<int64_t>& strides, Borders* borders) {
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] < 0 || kernel[i] < 0) {
      Refuse("padding_algorithm = \"SAME\", and the size of the images is unknown");
    }
    const int64_t windows = (extents[i] + strides[i] - 1) / strides[i];
    const int64_t total = std::max<int64_t>((windows - 1) * strides[i] + kernel[i] - extents[i], 0);
    borders->before[i] = total / 2;
    borders->after[i] = total - total / 2;
  }
}

}  // namespace

bool ChannelsAreLast(const std::string& format) { return format == "NHWC" || format == "NDHWC"; }

std::vector<int64_t> Borders::Pads() const {
  std::vector<int64_t> pads = before;
  pads.insert(pads.end(), after.begin(), after.end());
  return pads;
}

std::vector<int64_t> ExtentsOf(const Shape& shape, bool channels_last) {
  std::vector<int64_t> extents;
  const int first = channels_last ? 1 : 2;
  for (int axis = first; axis < shape.rank() - (channels_last ? 1 : 0); ++axis) {
    extents.push_back(shape[axis]);
  }
  return extents;
}

Borders BordersOf(OpExport& op, const std::vector<int64_t>& extents,
                  const std::vector<int64_t>& kernel, const std::vector<int64_t>& strides) {
  const size_t count = extents.size();
  const std::string algorithm = op.Text("padding_algorithm");
  if (algorithm != "VALID" && algorithm != "SAME") return PaddingsOf(op, count);
  op.Ignore("paddings");
  Borders borders{std::vector<int64_t>(count, 0), std::vector<int64_t>(count, 0)};
  if (algorithm == "SAME") PadToSame(extents, kernel, strides, &borders);
  return borders;
}

Borders PaddingsOf(OpExport& op, size_t axes) {
  Borders borders;
  const std::vector<int64_t> paddings = op.Ints("paddings");
  const bool has_both = paddings.size() == 2 * axes;
  for (size_t i = 0; i < axes; ++i) {
    borders.before.push_back(paddings.at(has_both ? 2 * i : i));
    borders.after.push_back(paddings.at(has_both ? 2 * i + 1 : i));
  }
  return borders;
}

void AddConvolutionExporters(ExporterTable* table) {
  for (const char* type : {"conv2d", "depthwise_conv2d", "conv3d"}) table->Add(type, Convolution);
  table->Add("conv2d_batch_norm_act", ConvolutionBatchNormAct);
  for (const char* type : {"conv2d_transpose", "depthwise_conv2d_transpose", "conv3d_transpose"}) {
    table->Add(type, TransposedConvolution);
  }
}

}  // namespace skiff::onnx_export
