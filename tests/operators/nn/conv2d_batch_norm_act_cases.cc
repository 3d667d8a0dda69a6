#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/operators/nn/convolution_reference.h"

namespace skiff::harness {
namespace {

using Ints = std::vector<int32_t>;

struct FusedSpec {
  ConvolutionSpec convolution;
  bool scale = true;
  bool bias = true;
  float epsilon = 1e-5f;
};

Arrays Conv2dBatchNormActReference(const FusedSpec& spec, bool rectifies, const Arrays& inputs) {
  Arrays outputs = ConvolutionReference(spec.convolution, inputs);
  Array& output = outputs.at("Output")[0];
  const ImageView images(&output, spec.convolution.channels_last);
  const auto value = [&](const std::string& slot, int64_t i, double otherwise) {
    const auto found = inputs.find(slot);
    return found == inputs.end() ? otherwise : found->second[0].values[static_cast<size_t>(i)];
  };
  for (int64_t n = 0; n < images.batch(); ++n) {
    for (int64_t c = 0; c < images.channels(); ++c) {
      for (int64_t y = 0; y < images.height(); ++y) {
        for (int64_t x = 0; x < images.width(); ++x) {
          double& pixel = images.at(n, c, y, x);
          pixel = (pixel - value("Mean", c, 0)) /
                  std::sqrt(value("Variance", c, 0) + static_cast<double>(spec.epsilon));
          pixel = pixel * value("Scale", c, 1) + value("Bias", c, 0);
        }
      }
    }
  }
  for (size_t i = 0; i < output.values.size(); ++i) {
    output.values[i] += value("Z", static_cast<int64_t>(i), 0);
    if (rectifies) output.values[i] = std::max(0.0, output.values[i]);
  }
  return outputs;
}

OpCase Conv2dBatchNormActCase(const FusedSpec& spec, bool adds, bool rectifies) {
  OpCase op_case = ConvolutionCase("conv2d_batch_norm_act", spec.convolution);
  if (adds) op_case.name += "_and_sum";
  if (rectifies) op_case.name += "_and_relu";
  const Shape channels = {spec.convolution.filter[0]};
  op_case.inputs["Mean"] = {Uniform(channels, 3)};
  op_case.inputs["Variance"] = {Uniform(channels, 4, 0.25, 2.0)};
  if (spec.scale) op_case.inputs["Scale"] = {Uniform(channels, 5, 0.5, 1.5)};
  if (spec.bias) op_case.inputs["Bias"] = {Uniform(channels, 6)};
  if (adds) {
    const Shape output =
        ImageShape(ConvolutionOutput(spec.convolution), spec.convolution.channels_last);
    op_case.inputs["Z"] = {Uniform(output, 7)};
  }
  if (rectifies) op_case.attrs["act_type"] = std::string("relu");
  if (spec.epsilon != 1e-5f) op_case.attrs["epsilon"] = spec.epsilon;
  op_case.reference = [spec, rectifies](const Arrays& inputs) {
    return Conv2dBatchNormActReference(spec, rectifies, inputs);
  };
  op_case.gradients = {};
  // Winograd's algorithm has an error of 1.2e-5 in a channel that the normalization enlarges three
  // times as much as others.
  op_case.float32_tolerance = 2e-5;
  // The filters are rounded again when the normalization is folded into them, each by 2^-9, and
  // products cancel.
  op_case.bfloat16_tolerance = 0x1p-6;
  return op_case;
}

}  // namespace

void AddConv2dBatchNormActCases(CaseList& cases) {
  const AttributeMap padded = {{"paddings", Ints{1, 1}}};
  const std::vector<FusedSpec> specs = {
      {.convolution = {.name = "no_padding", .input = {2, 3, 5, 6}, .filter = {4, 3, 3, 2}}},
      {.convolution = {.name = "strides",
                       .input = {2, 16, 9, 8},
                       .filter = {17, 16, 3, 3},
                       .stride = {2, 2},
                       .padding = {1, 1, 1, 1},
                       .attrs = padded},
       .epsilon = 1e-3f},
      {.convolution =
           {.name = "groups", .input = {2, 4, 5, 5}, .filter = {6, 2, 3, 3}, .groups = 2}},
      {.convolution = {.name = "pointwise", .input = {2, 17, 5, 4}, .filter = {16, 17, 1, 1}}},
      {.convolution = {.name = "without_scale_and_bias",
                       .input = {2, 32, 6, 6},
                       .filter = {16, 32, 3, 3},
                       .padding = {1, 1, 1, 1},
                       .attrs = padded},
       .scale = false,
       .bias = false},
      {.convolution = {.name = "overhanging_tiles",
                       .input = {2, 24, 9, 11},
                       .filter = {40, 24, 3, 3},
                       .padding = {1, 1, 1, 1},
                       .attrs = padded}},
      {.convolution = {.name = "images_of_two_by_two",
                       .input = {5, 33, 2, 2},
                       .filter = {16, 33, 3, 3},
                       .padding = {1, 1, 1, 1},
                       .attrs = padded}},
      // More transformed filters than are kept.
      {.convolution = {.name = "many_filters",
                       .input = {2, 144, 4, 4},
                       .filter = {224, 144, 3, 3},
                       .padding = {1, 1, 1, 1},
                       .attrs = padded}},
      {.convolution = {.name = "channels_last",
                       .input = {2, 3, 6, 5},
                       .filter = {4, 3, 3, 3},
                       .stride = {2, 1},
                       .padding = {1, 1, 0, 2},
                       .channels_last = true,
                       .attrs = {{"paddings", Ints{1, 1, 0, 2}}}}},
      {.convolution = {.name = "empty_batch", .input = {0, 3, 5, 5}, .filter = {4, 3, 3, 3}}},
      {.convolution = {.name = "resnet_64_at_56",
                       .input = {8, 64, 56, 56},
                       .filter = {64, 64, 3, 3},
                       .padding = {1, 1, 1, 1},
                       .attrs = padded,
                       .benchmark_only = true}},
  };
  for (const FusedSpec& spec : specs) {
    for (const bool adds : {false, true}) {
      for (const bool rectifies : {false, true})
        cases.push_back(Conv2dBatchNormActCase(spec, adds, rectifies));
    }
  }
}

}  // namespace skiff::harness
