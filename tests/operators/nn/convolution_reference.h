// Cases of convolutions with a naive float64 reference.
#pragma once

#include <string>

#include "tests/harness/op_case.h"
#include "tests/operators/nn/image_reference.h"

namespace skiff::harness {

struct ConvolutionSpec {
  std::string name;
  Shape input;   // N, C, H, W, whatever the format
  Shape filter;  // O, C / groups, height, width
  Pair stride;
  // What the op is expected to pad and to dilate by.
  Padding padding;
  Pair dilation;
  int64_t groups = 1;
  bool channels_last = false;
  AttributeMap attrs;
  bool benchmark_only = false;
};

// N, C, H, W, whatever the format.
inline Shape ConvolutionOutput(const ConvolutionSpec& spec) {
  const auto extent = [](int64_t size, int64_t before, int64_t after, int64_t kernel,
                         int64_t dilation, int64_t stride) {
    return (size + before + after - dilation * (kernel - 1) - 1) / stride + 1;
  };
  const int64_t height = extent(spec.input[2], spec.padding.top, spec.padding.bottom,
                                spec.filter[2], spec.dilation.height, spec.stride.height);
  const int64_t width = extent(spec.input[3], spec.padding.left, spec.padding.right, spec.filter[3],
                               spec.dilation.width, spec.stride.width);
  return {spec.input[0], spec.filter[0], height, width};
}

inline Arrays ConvolutionReference(const ConvolutionSpec& spec, const Arrays& inputs) {
  Array input = inputs.at("Input")[0];
  const Array& filter = inputs.at("Filter")[0];
  Array output = Zeros(ImageShape(ConvolutionOutput(spec), spec.channels_last));
  const ImageView in(&input, spec.channels_last);
  const ImageView out(&output, spec.channels_last);
  const int64_t group_outputs = spec.filter[0] / spec.groups;
  for (int64_t n = 0; n < out.batch(); ++n) {
    for (int64_t o = 0; o < out.channels(); ++o) {
      for (int64_t y = 0; y < out.height(); ++y) {
        for (int64_t x = 0; x < out.width(); ++x) {
          double sum = 0;
          size_t tap = static_cast<size_t>(o * spec.filter[1] * spec.filter[2] * spec.filter[3]);
          for (int64_t c = 0; c < spec.filter[1]; ++c) {
            for (int64_t i = 0; i < spec.filter[2]; ++i) {
              for (int64_t j = 0; j < spec.filter[3]; ++j, ++tap) {
                const int64_t row =
                    y * spec.stride.height + i * spec.dilation.height - spec.padding.top;
                const int64_t column =
                    x * spec.stride.width + j * spec.dilation.width - spec.padding.left;
                if (!in.contains(row, column)) continue;
                sum += filter.values[tap] *
                       in.at(n, o / group_outputs * spec.filter[1] + c, row, column);
              }
            }
          }
          out.at(n, o, y, x) = sum;
        }
      }
    }
  }
  return {{"Output", {std::move(output)}}};
}

inline OpCase ConvolutionCase(const std::string& type, const ConvolutionSpec& spec) {
  OpCase op_case;
  op_case.name = spec.name;
  op_case.type = type;
  op_case.inputs = {{"Input", {Uniform(ImageShape(spec.input, spec.channels_last), 1)}},
                    {"Filter", {Uniform(spec.filter, 2)}}};
  op_case.attrs = spec.attrs;
  if (spec.channels_last) op_case.attrs["data_format"] = std::string("NHWC");
  if (spec.groups != 1) op_case.attrs["groups"] = static_cast<int32_t>(spec.groups);
  if (spec.stride.height != 1 || spec.stride.width != 1) {
    op_case.attrs["strides"] = std::vector<int32_t>{static_cast<int32_t>(spec.stride.height),
                                                    static_cast<int32_t>(spec.stride.width)};
  }
  op_case.reference = [spec](const Arrays& inputs) { return ConvolutionReference(spec, inputs); };
  op_case.outputs = {{"Output", 1}};
  op_case.gradients = {"Input", "Filter"};
  op_case.benchmark_only = spec.benchmark_only;
  return op_case;
}

}  // namespace skiff::harness
