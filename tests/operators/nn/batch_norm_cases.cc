#include "tests/operators/nn/batch_norm_reference.h"
#include "tests/operators/scaled_case.h"

namespace skiff::harness {

void AddBatchNormCases(CaseList& cases) {
  const std::vector<NormSpec> specs = {
      {.name = "images", .x = {2, 3, 5, 4}},
      {.name = "one_channel", .x = {3, 1, 4, 4}},
      {.name = "whole_blocks", .x = {3, 16, 5, 6}},
      {.name = "part_of_a_block", .x = {2, 17, 5, 5}},
      {.name = "rows_longer_than_a_chunk", .x = {2, 3, 70, 80}},
      {.name = "more_images_than_parts", .x = {70, 3, 4, 4}},
      {.name = "vectors", .x = {7, 5}},
      {.name = "sequences", .x = {3, 4, 20}},
      {.name = "volumes", .x = {2, 3, 3, 4, 5}},
      {.name = "channels_last", .x = {2, 4, 5, 3}, .channels_last = true},
      {.name = "vectors_channels_last", .x = {6, 4}, .channels_last = true},
      {.name = "vectors_of_several_tiles", .x = {300, 150}},
      {.name = "more_vectors_than_a_chunk", .x = {17000, 3}},
      {.name = "one_pixel", .x = {9, 18, 1, 1}},
      {.name = "channels_last_of_several_tiles", .x = {3, 7, 9, 83}, .channels_last = true},
      {.name = "momentum_and_epsilon",
       .x = {2, 3, 4, 5},
       .momentum = 0.75f,
       .epsilon = 1e-3f,
       .attrs = {{"momentum", 0.75f}, {"epsilon", 1e-3f}}},
      {.name = "momentum_tensor", .x = {2, 3, 4, 5}, .momentum_tensor = 0.5},
      {.name = "without_scale_and_bias", .x = {2, 17, 4, 5}, .scale = false, .bias = false},
      {.name = "evaluation", .x = {2, 17, 4, 5}, .global = true, .attrs = {{"is_test", true}}},
      {.name = "global_statistics",
       .x = {2, 17, 4, 5},
       .global = true,
       .attrs = {{"use_global_stats", true}}},
      {.name = "global_statistics_channels_last",
       .x = {2, 4, 5, 3},
       .channels_last = true,
       .global = true,
       .attrs = {{"use_global_stats", true}}},
      {.name = "trainable_statistics",
       .x = {2, 3, 4, 5},
       .attrs = {{"is_test", true}, {"trainable_statistics", true}}},
      {.name = "one_value_a_channel", .x = {1, 17, 1, 1}, .unchanged = true},
      {.name = "empty_batch_of_evaluation",
       .x = {0, 3, 4, 4},
       .global = true,
       .attrs = {{"is_test", true}}},
      // X holds 3e-5 of rounding against a spread of 0.9; central differences are off by 1e-5.
      {.name = "far_from_zero",
       .x = {4, 17, 6, 6},
       .offset = 500,
       .float32_tolerance = 1e-4,
       .gradient_tolerance = 1e-4},
      {.name = "channels_last_far_from_zero",
       .x = {4, 6, 6, 17},
       .channels_last = true,
       .offset = 500,
       .float32_tolerance = 1e-4,
       .gradient_tolerance = 1e-4},
      {.name = "moments", .x = {2, 17, 5, 4}, .moments = true},
      {.name = "moments_of_vectors", .x = {300, 150}, .moments = true},
      {.name = "moments_of_evaluation",
       .x = {2, 17, 4, 5},
       .global = true,
       .moments = true,
       .attrs = {{"is_test", true}}},
      {.name = "moments_of_one_value", .x = {1, 17, 1, 1}, .unchanged = true, .moments = true},
      {.name = "resnet_64_at_56", .x = {8, 64, 56, 56}, .benchmark_only = true},
      {.name = "resnet_512_at_7", .x = {8, 512, 7, 7}, .benchmark_only = true},
      {.name = "perceptron_64x1024", .x = {64, 1024}, .benchmark_only = true},
      {.name = "channels_last_64_at_56",
       .x = {8, 56, 56, 64},
       .channels_last = true,
       .benchmark_only = true},
  };
  for (const NormSpec& spec : specs) cases.push_back(NormCase(spec));
  for (const int64_t size : {15, 16, 17, 64, 100}) {
    const std::string name = "of_" + std::to_string(size);
    for (NormSpec spec : std::vector<NormSpec>{
             {.name = name, .x = {2, 17, size}},
             {.name = name + "_vectors", .x = {size, 5}},
             {.name = name + "_channels_last", .x = {2, size, 5}, .channels_last = true}}) {
      spec.epsilon = 0;
      spec.attrs = {{"epsilon", 0.0f}};
      cases.push_back(WithScaledX(NormCase(spec), "huge", 1e20, {"VarianceOut"}));
      cases.push_back(WithScaledX(NormCase(spec), "tiny", 1e-22));
      cases.push_back(NormGradCase(spec, "gradient_of_huge", 1e20, /*has_y=*/false));
      cases.push_back(NormGradCase(spec, "gradient_of_tiny", 1e-22, /*has_y=*/false));
    }
  }
}

}  // namespace skiff::harness
