#include "tests/operators/nn/transposed_convolution_reference.h"

namespace skiff::harness {

void AddDepthwiseConv2dTransposeCases(CaseList& cases) {
  const std::vector<TransposeSpec> specs = {
      {.name = "doubled",
       .input = {2, 3, {1, 4, 5}},
       .outputs = 3,
       .kernel = {1, 4, 4},
       .output = {1, 8, 10},
       .stride = {1, 2, 2},
       .padding = {0, 1, 1},
       .groups = 3,
       .attrs = {{"strides", std::vector<int32_t>{2, 2}},
                 {"paddings", std::vector<int32_t>{1, 1}}}},
      {.name = "two_filters_a_channel",
       .input = {1, 3, {1, 4, 5}},
       .outputs = 6,
       .kernel = {1, 3, 2},
       .output = {1, 6, 6},
       .groups = 3},
      {.name = "channels_last",
       .input = {2, 4, {1, 3, 5}},
       .outputs = 4,
       .kernel = {1, 3, 3},
       .output = {1, 5, 7},
       .groups = 4,
       .channels_last = true},
      {.name = "decoder_8x256x28x28",
       .input = {8, 256, {1, 28, 28}},
       .outputs = 256,
       .kernel = {1, 4, 4},
       .output = {1, 56, 56},
       .stride = {1, 2, 2},
       .padding = {0, 1, 1},
       .groups = 256,
       .attrs = {{"strides", std::vector<int32_t>{2, 2}}, {"paddings", std::vector<int32_t>{1, 1}}},
       .benchmark_only = true},
  };
  for (const TransposeSpec& spec : specs) {
    cases.push_back(TransposeCase("depthwise_conv2d_transpose", spec));
  }
}

}  // namespace skiff::harness
