// Cases on a single rank, which expects what batch_norm gives. What several ranks get is in
// sync_batch_norm_test.cc.
#include "tests/operators/nn/batch_norm_reference.h"

namespace skiff::harness {

void AddSyncBatchNormCases(CaseList& cases) {
  const std::vector<NormSpec> specs = {
      {.name = "images", .x = {2, 17, 5, 5}},
      {.name = "vectors", .x = {7, 5}},
      {.name = "volumes", .x = {2, 3, 3, 4, 5}},
      {.name = "channels_last", .x = {2, 4, 5, 3}, .channels_last = true},
      {.name = "vectors_of_several_tiles", .x = {300, 150}},
      {.name = "momentum_tensor", .x = {2, 3, 4, 5}, .momentum_tensor = 0.5},
      {.name = "without_scale_and_bias", .x = {2, 17, 4, 5}, .scale = false, .bias = false},
      {.name = "evaluation", .x = {2, 17, 4, 5}, .global = true, .attrs = {{"is_test", true}}},
      {.name = "global_statistics",
       .x = {2, 17, 4, 5},
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
  };
  for (const NormSpec& spec : specs) {
    OpCase op_case = NormCase(spec);
    op_case.type = "sync_batch_norm";
    cases.push_back(std::move(op_case));
  }
}

}  // namespace skiff::harness
