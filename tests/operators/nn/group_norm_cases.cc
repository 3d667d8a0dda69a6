#include "tests/operators/nn/group_norm_reference.h"
#include "tests/operators/scaled_case.h"

namespace skiff::harness {
namespace {

OpCase Case(const GroupNormSpec& spec) {
  OpCase op_case = GroupNormCase("group_norm", spec);
  op_case.attrs["groups"] = static_cast<int32_t>(spec.groups);
  if (spec.channels_last) op_case.attrs["data_layout"] = std::string("NHWC");
  op_case.outputs = {{"Y", 1}, {"Mean", 1}, {"Variance", 1}};
  op_case.reference = [spec](const Arrays& inputs) {
    const GroupNormResult result = GroupNormReference(spec, inputs);
    const Shape shape = {spec.x[0], spec.groups};
    return Arrays{{"Y", {result.y}},
                  {"Mean", {Values(shape, result.means)}},
                  {"Variance", {Values(shape, result.variances)}}};
  };
  return op_case;
}

}  // namespace

void AddGroupNormCases(CaseList& cases) {
  const std::vector<GroupNormSpec> specs = {
      {.name = "images", .x = {2, 6, 4, 5}, .groups = 3},
      {.name = "one_group", .x = {3, 4, 3, 3}, .groups = 1},
      {.name = "a_group_a_channel", .x = {2, 3, 5, 7}, .groups = 3},
      {.name = "vectors", .x = {3, 8}, .groups = 2},
      {.name = "sequences", .x = {2, 4, 19}, .groups = 2},
      {.name = "volumes", .x = {2, 4, 2, 3, 5}, .groups = 2},
      {.name = "channels_last", .x = {2, 4, 5, 6}, .groups = 3, .channels_last = true},
      {.name = "sequences_channels_last", .x = {2, 7, 4}, .groups = 2, .channels_last = true},
      {.name = "channels_last_without_scale_and_bias",
       .x = {2, 3, 4},
       .groups = 2,
       .channels_last = true,
       .scale = false,
       .bias = false},
      {.name = "without_scale", .x = {2, 4, 3, 3}, .groups = 2, .scale = false},
      {.name = "without_bias", .x = {2, 4, 3, 3}, .groups = 2, .bias = false},
      {.name = "without_scale_and_bias",
       .x = {2, 4, 3, 3},
       .groups = 2,
       .scale = false,
       .bias = false},
      {.name = "epsilon", .x = {2, 4, 3, 3}, .groups = 2, .epsilon = 1e-2f},
      {.name = "long_runs", .x = {1, 4, 71, 70}, .groups = 2},
      {.name = "no_images", .x = {0, 4, 3, 3}, .groups = 2},
      {.name = "no_pixels", .x = {2, 4, 0}, .groups = 2},
      // X holds 3e-5 of rounding against a spread of 0.9; central differences are off by 1e-5.
      {.name = "far_from_zero",
       .x = {2, 4, 6, 6},
       .groups = 2,
       .offset = 500,
       .float32_tolerance = 1e-4,
       .gradient_tolerance = 1e-4},
      {.name = "images_8x64x56x56_by_32",
       .x = {8, 64, 56, 56},
       .groups = 32,
       .benchmark_only = true},
  };
  for (const GroupNormSpec& spec : specs) cases.push_back(Case(spec));
  for (const int64_t size : {15, 16, 17, 64, 100}) {
    for (const bool is_last : {false, true}) {
      const GroupNormSpec spec = {
          .name = "of_" + std::to_string(size) + (is_last ? "_channels_last" : ""),
          .x = is_last ? Shape{2, size, 4} : Shape{2, 4, size},
          .groups = 2,
          .channels_last = is_last,
          .epsilon = 0};
      cases.push_back(WithScaledX(Case(spec), "huge", 1e20, {"Variance"}));
      cases.push_back(WithScaledX(Case(spec), "tiny", 1e-22));
    }
  }
}

}  // namespace skiff::harness
