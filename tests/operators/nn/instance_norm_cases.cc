#include "tests/operators/nn/group_norm_reference.h"
#include "tests/operators/scaled_case.h"

namespace skiff::harness {
namespace {

OpCase InstanceNormCase(GroupNormSpec spec) {
  spec.groups = spec.x[1];
  OpCase op_case = GroupNormCase("instance_norm", spec);
  op_case.outputs = {{"Y", 1}, {"SavedMean", 1}, {"SavedVariance", 1}};
  op_case.reference = [spec](const Arrays& inputs) {
    GroupNormResult result = GroupNormReference(spec, inputs);
    for (double& variance : result.variances) {
      variance = 1 / std::sqrt(variance + static_cast<double>(spec.epsilon));
    }
    const Shape shape = {spec.x[0] * spec.x[1]};
    return Arrays{{"Y", {result.y}},
                  {"SavedMean", {Values(shape, result.means)}},
                  {"SavedVariance", {Values(shape, result.variances)}}};
  };
  return op_case;
}

}  // namespace

void AddInstanceNormCases(CaseList& cases) {
  const std::vector<GroupNormSpec> specs = {
      {.name = "images", .x = {2, 3, 4, 5}},
      {.name = "one_channel", .x = {3, 1, 4, 4}},
      {.name = "vectors", .x = {3, 4}},
      {.name = "sequences", .x = {2, 3, 19}},
      {.name = "volumes", .x = {2, 2, 2, 3, 5}},
      {.name = "without_scale", .x = {2, 3, 4, 4}, .scale = false},
      {.name = "without_bias", .x = {2, 3, 4, 4}, .bias = false},
      {.name = "without_scale_and_bias", .x = {2, 3, 4, 4}, .scale = false, .bias = false},
      {.name = "epsilon", .x = {2, 3, 4, 4}, .epsilon = 1e-3f},
      {.name = "long_runs", .x = {1, 2, 71, 70}},
      {.name = "no_images", .x = {0, 3, 4, 4}},
      {.name = "no_channels", .x = {2, 0, 4, 4}},
      // X holds 3e-5 of rounding against a spread of 0.9; central differences are off by 1e-5.
      {.name = "far_from_zero",
       .x = {2, 3, 6, 6},
       .offset = 500,
       .float32_tolerance = 1e-4,
       .gradient_tolerance = 1e-4},
      {.name = "style_4x64x128x128", .x = {4, 64, 128, 128}, .benchmark_only = true},
  };
  for (const GroupNormSpec& spec : specs) cases.push_back(InstanceNormCase(spec));
  for (const int64_t size : {15, 16, 17, 64, 100}) {
    const GroupNormSpec spec = {
        .name = "of_" + std::to_string(size), .x = {2, 3, size}, .epsilon = 0};
    cases.push_back(WithScaledX(InstanceNormCase(spec), "huge", 1e20));
    cases.push_back(WithScaledX(InstanceNormCase(spec), "tiny", 1e-22));
  }
}

}  // namespace skiff::harness
