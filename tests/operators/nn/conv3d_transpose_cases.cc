#include "tests/operators/nn/transposed_convolution_reference.h"

namespace skiff::harness {
namespace {

using Ints = std::vector<int32_t>;

}  // namespace

void AddConv3dTransposeCases(CaseList& cases) {
  std::vector<TransposeSpec> specs = {
      {.name = "one_tap", .input = {2, 3, {2, 3, 4}}, .outputs = 2, .output = {2, 3, 4}},
      {.name = "any_layout",
       .input = {1, 2, {2, 3, 2}},
       .outputs = 2,
       .output = {2, 3, 2},
       .attrs = {{"data_format", std::string("AnyLayout")}}},
      {.name = "windows",
       .input = {2, 3, {2, 4, 3}},
       .outputs = 4,
       .kernel = {2, 3, 2},
       .output = {3, 6, 4}},
      {.name = "strides_and_paddings",
       .input = {1, 3, {3, 4, 2}},
       .outputs = 2,
       .kernel = {4, 3, 2},
       .output = {6, 10, 1},
       .stride = {2, 3, 1},
       .padding = {1, 1, 1},
       .attrs = {{"strides", Ints{2, 3, 1}}, {"paddings", Ints{1, 1, 1}}}},
      {.name = "padded_unevenly",
       .input = {1, 2, {3, 4, 3}},
       .outputs = 2,
       .kernel = {3, 3, 2},
       .output = {4, 4, 3},
       .padding = {1, 0, 0},
       .attrs = {{"paddings", Ints{1, 0, 0, 2, 0, 1}}}},
      {.name = "output_padding",
       .input = {1, 2, {2, 3, 2}},
       .outputs = 2,
       .kernel = {2, 2, 2},
       .output = {5, 6, 4},
       .stride = {2, 2, 2},
       .attrs = {{"strides", Ints{2, 2, 2}}, {"output_padding", Ints{1, 0, 0}}}},
      {.name = "output_size",
       .input = {1, 2, {2, 3, 2}},
       .outputs = 2,
       .kernel = {2, 2, 2},
       .output = {4, 7, 5},
       .stride = {2, 2, 2},
       .attrs = {{"strides", Ints{2, 2, 2}}, {"output_size", Ints{4, 7, 5}}}},
      {.name = "dilations",
       .input = {1, 2, {2, 3, 2}},
       .outputs = 2,
       .kernel = {2, 2, 3},
       .output = {4, 6, 4},
       .dilation = {2, 3, 1},
       .attrs = {{"dilations", Ints{2, 3, 1}}}},
      {.name = "groups",
       .input = {2, 4, {2, 3, 2}},
       .outputs = 6,
       .kernel = {2, 1, 2},
       .output = {3, 3, 3},
       .groups = 2},
      {.name = "channels_last",
       .input = {2, 4, {2, 3, 2}},
       .outputs = 6,
       .kernel = {2, 2, 2},
       .output = {3, 4, 3},
       .groups = 2,
       .channels_last = true},
      {.name = "channels_last_as_of_images",
       .input = {2, 2, {2, 3, 2}},
       .outputs = 3,
       .kernel = {2, 1, 2},
       .output = {3, 3, 3},
       .channels_last = true,
       .attrs = {{"data_format", std::string("NHWC")}}},
      {.name = "no_volumes",
       .input = {0, 2, {2, 3, 2}},
       .outputs = 2,
       .kernel = {2, 2, 2},
       .output = {3, 4, 3}},
      {.name = "decoder_2x64x8x28x28",
       .input = {2, 64, {8, 28, 28}},
       .outputs = 32,
       .kernel = {2, 2, 2},
       .output = {16, 56, 56},
       .stride = {2, 2, 2},
       .attrs = {{"strides", Ints{2, 2, 2}}},
       .benchmark_only = true},
  };
  for (TransposeSpec& spec : specs) {
    spec.is_image = false;
    cases.push_back(TransposeCase("conv3d_transpose", spec));
  }
}

}  // namespace skiff::harness
