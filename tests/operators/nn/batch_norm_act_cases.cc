#include <algorithm>

#include "tests/operators/nn/batch_norm_reference.h"

namespace skiff::harness {
namespace {

Arrays BatchNormActReference(const NormSpec& spec, const Arrays& inputs) {
  Arrays outputs = NormReference(spec, inputs);
  auto& y = outputs.at("Y")[0].values;
  const auto z = inputs.find("Z");
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = std::max(0.0, y[i] + (z == inputs.end() ? 0.0 : z->second[0].values[i]));
  }
  return outputs;
}

OpCase BatchNormActCase(NormSpec spec, bool adds) {
  if (adds) spec.name += "_and_sum";
  OpCase op_case = NormCase(spec);
  op_case.type = "batch_norm_act";
  if (adds) {
    op_case.inputs["Z"] = {Uniform(spec.x, 6)};
    op_case.gradients.push_back("Z");
  }
  op_case.reference = [spec](const Arrays& inputs) { return BatchNormActReference(spec, inputs); };
  return op_case;
}

}  // namespace

void AddBatchNormActCases(CaseList& cases) {
  const std::vector<NormSpec> specs = {
      {.name = "images", .x = {2, 3, 5, 4}},
      {.name = "one_channel", .x = {3, 1, 4, 4}},
      {.name = "whole_blocks", .x = {3, 16, 5, 6}},
      {.name = "part_of_a_block", .x = {2, 17, 5, 5}},
      {.name = "more_images_than_parts", .x = {70, 3, 4, 4}},
      {.name = "vectors", .x = {7, 5}},
      {.name = "volumes", .x = {2, 3, 3, 4, 5}},
      {.name = "channels_last", .x = {2, 4, 5, 3}, .channels_last = true},
      {.name = "vectors_of_several_tiles", .x = {300, 150}},
      {.name = "channels_last_of_several_tiles", .x = {3, 7, 9, 83}, .channels_last = true},
      {.name = "momentum_and_epsilon",
       .x = {2, 3, 4, 5},
       .momentum = 0.75f,
       .epsilon = 1e-3f,
       .attrs = {{"momentum", 0.75f}, {"epsilon", 1e-3f}}},
      {.name = "without_scale_and_bias", .x = {2, 17, 4, 5}, .scale = false, .bias = false},
      {.name = "evaluation", .x = {2, 17, 4, 5}, .global = true, .attrs = {{"is_test", true}}},
      {.name = "global_statistics",
       .x = {2, 17, 4, 5},
       .global = true,
       .attrs = {{"use_global_stats", true}}},
      {.name = "one_value_a_channel", .x = {1, 17, 1, 1}, .unchanged = true},
      {.name = "empty_batch_of_evaluation",
       .x = {0, 3, 4, 4},
       .global = true,
       .attrs = {{"is_test", true}}},
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
      {.name = "channels_last_64_at_56",
       .x = {8, 56, 56, 64},
       .channels_last = true,
       .benchmark_only = true},
  };
  for (const NormSpec& spec : specs) {
    for (const bool adds : {false, true}) cases.push_back(BatchNormActCase(spec, adds));
  }
  for (const NormSpec& spec :
       std::vector<NormSpec>{{.name = "planes", .x = {2, 17, 100}},
                             {.name = "rows", .x = {2, 100, 5}, .channels_last = true}}) {
    cases.push_back(NormGradCase(spec, "gradient_of_huge", 1e20, /*has_y=*/true));
    cases.push_back(NormGradCase(spec, "gradient_of_tiny", 1e-22, /*has_y=*/true));
  }
}

}  // namespace skiff::harness
