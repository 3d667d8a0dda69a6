#include <cstdint>
#include <string>
#include <vector>

#include "tests/operators/nn/convolution_reference.h"

namespace skiff::harness {

using Ints = std::vector<int32_t>;

void AddDepthwiseConv2dCases(CaseList& cases) {
  const std::vector<ConvolutionSpec> specs = {
      {.name = "whole_block",
       .input = {2, 16, 7, 6},
       .filter = {16, 1, 3, 3},
       .padding = {1, 1, 1, 1},
       .groups = 16,
       .attrs = {{"paddings", Ints{1, 1}}}},
      {.name = "part_of_a_block",
       .input = {1, 17, 6, 6},
       .filter = {17, 1, 3, 3},
       .stride = {2, 2},
       .padding = {1, 1, 1, 1},
       .groups = 17,
       .attrs = {{"paddings", Ints{1, 1}}}},
      {.name = "two_filters_a_channel", .input = {1, 3, 6, 5}, .filter = {6, 1, 3, 3}, .groups = 3},
      {.name = "one_channel", .input = {1, 1, 5, 5}, .filter = {1, 1, 3, 3}},
      // ceil(6 / 2) = 3 rows and columns need 1 pixel of padding.
      {.name = "same_padding",
       .input = {1, 3, 6, 6},
       .filter = {3, 1, 3, 3},
       .stride = {2, 2},
       .padding = {0, 1, 0, 1},
       .groups = 3,
       .attrs = {{"padding_algorithm", std::string("SAME")}}},
      {.name = "dilations",
       .input = {1, 16, 8, 8},
       .filter = {16, 1, 3, 3},
       .padding = {2, 2, 2, 2},
       .dilation = {2, 2},
       .groups = 16,
       .attrs = {{"paddings", Ints{2, 2}}, {"dilations", Ints{2, 2}}}},
      {.name = "channels_last",
       .input = {2, 4, 5, 6},
       .filter = {4, 1, 3, 3},
       .padding = {1, 1, 1, 1},
       .groups = 4,
       .channels_last = true,
       .attrs = {{"paddings", Ints{1, 1}}}},
      {.name = "empty_batch", .input = {0, 3, 5, 5}, .filter = {3, 1, 3, 3}, .groups = 3},
      {.name = "mobilenet_256_at_28",
       .input = {8, 256, 28, 28},
       .filter = {256, 1, 3, 3},
       .padding = {1, 1, 1, 1},
       .groups = 256,
       .attrs = {{"paddings", Ints{1, 1}}},
       .benchmark_only = true},
  };
  for (const ConvolutionSpec& spec : specs)
    cases.push_back(ConvolutionCase("depthwise_conv2d", spec));
}

}  // namespace skiff::harness
