// The cases of convolutions with so little memory for columns that each batch, and each image of
// many points, is taken in parts.
#include <algorithm>

#include "framework/op/registry.h"
#include "operators/nn/convolution/cuda_convolution.h"
#include "operators/nn/nn_ops.h"
#include "tests/harness/case_test_main.h"
#include "tests/operators/nn/convolution_reference.h"
#include "tests/operators/nn/nn_case_list.h"

namespace skiff::harness {
namespace {

// Two images of some cases, and a few points, or one, of others.
constexpr int64_t kBytes = 1 << 10;

bool IsOfParts(const OpCase& op_case) {
  constexpr const char* kNames[] = {
      "no_padding", "padding_of_two_values", "padding_of_four_values", "strides", "groups",
      "pointwise",  "channels_last",         "channels_last_groups",   "windows", "doubled"};
  return (op_case.type == "conv2d" || op_case.type == "conv2d_transpose") &&
         std::ranges::count(kNames, op_case.name) > 0;
}

// Three parts: two, two and one of five images.
OpCase SmallImages() {
  return ConvolutionCase(
      "conv2d", {.name = "five_small_images", .input = {5, 3, 4, 4}, .filter = {4, 3, 3, 3}});
}

// Pixels enough for two sums of the filter's gradient, of three images each.
OpCase ManyPixels() {
  return ConvolutionCase("conv2d", {.name = "many_pixels_channels_last",
                                    .input = {6, 3, 14, 13},
                                    .filter = {4, 3, 1, 1},
                                    .channels_last = true});
}

}  // namespace
}  // namespace skiff::harness

int main(int argc, char** argv) {
  skiff::CudaColumnBytes() = skiff::harness::kBytes;
  skiff::OpRegistry registry;
  skiff::RegisterNnOps(registry);
  skiff::harness::CaseList cases;
  skiff::harness::AddNnCases(cases);
  std::erase_if(cases, [](const auto& op_case) { return !skiff::harness::IsOfParts(op_case); });
  cases.push_back(skiff::harness::SmallImages());
  cases.push_back(skiff::harness::ManyPixels());
  return skiff::harness::RunCudaCaseTests(&argc, argv, registry, cases);
}
