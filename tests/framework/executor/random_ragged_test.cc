// Random programs on ragged feeds compute the same bits however their memory is planned, with dead
// memory full of NaN, and with plans for the very rows of each run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "framework/ir/op_role.h"
#include "framework/op/registry.h"
#include "tests/harness/memory_check.h"
#include "tests/harness/random_ragged_workload.h"

namespace skiff::harness {
namespace {

using ::testing::IsEmpty;

constexpr uint64_t kPrograms = 24;

Workload Draw(uint64_t seed) {
  return RandomRaggedWorkload(DefaultOpRegistry(), seed,
                              {.layers = 4 + static_cast<int>(seed % 12)});
}

TEST(RandomRagged, RepeatsForOneSeed) {
  const Workload first = Draw(3);
  EXPECT_EQ(WorkloadText(first), WorkloadText(Draw(3)));
  EXPECT_NE(WorkloadText(first), WorkloadText(Draw(4)));
}

TEST(RandomRagged, DrawsEverySequenceOpAndItsGradient) {
  std::set<std::string> drawn;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    const Workload workload = Draw(seed);
    for (const auto& op : workload.programs[0]->root()->ops()) drawn.insert(op->type);
  }
  for (const std::string type : {"sequence_pool",
                                 "sequence_softmax",
                                 "sequence_conv",
                                 "sequence_reverse",
                                 "sequence_reshape",
                                 "sequence_concat",
                                 "sequence_expand",
                                 "sequence_expand_as",
                                 "sequence_scatter",
                                 "sequence_slice",
                                 "sequence_pad",
                                 "sequence_unpad",
                                 "lod_reset",
                                 "im2sequence",
                                 "row_conv",
                                 "gru",
                                 "lstm",
                                 "lstmp",
                                 "lookup_table",
                                 "lookup_table_v2"}) {
    EXPECT_TRUE(drawn.contains(type)) << type;
    // The images are fed, and nobody wants their gradient.
    EXPECT_EQ(drawn.contains(type + "_grad"), type != "im2sequence") << type;
  }
  for (const std::string type : {"sequence_enumerate", "sequence_erase", "sequence_mask", "while",
                                 "while_grad", "lod_tensor_to_array", "array_to_lod_tensor"}) {
    EXPECT_TRUE(drawn.contains(type)) << type;
  }
}

class RandomRaggedPrograms : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomRaggedPrograms, ComputeTheSameBitsHoweverMemoryIsPlanned) {
  const Workload workload = Draw(GetParam());
  const std::vector<RunTrace> expected = RunWorkload(workload, NoReuse().options);
  for (const MemoryChoice& choice : MemoryChoices()) {
    EXPECT_THAT(MemoryFaults(workload, expected, choice), IsEmpty()) << choice << "\n"
                                                                     << WorkloadText(workload);
    if (HasFailure()) return;
  }
}

TEST_P(RandomRaggedPrograms, ComputeTheBitsOfPlansForTheVeryRows) {
  const Workload workload = Draw(GetParam());
  const CompileOptions exact{.memory = {.policy = ReusePolicy::kNone}, .exact_rows = true};
  const std::vector<RunTrace> expected = RunWorkload(workload, exact);
  const std::vector<RunTrace> found =
      RunWorkload(workload, {.memory = {.poison_dead_memory = true}});
  EXPECT_THAT(TraceDifferences(workload, expected, found, /*tolerance=*/0), IsEmpty())
      << WorkloadText(workload);
  for (size_t i = 0; i < found.size() && !HasFailure(); ++i) {
    for (size_t k = 0; k < found[i].fetches.size(); ++k) {
      EXPECT_EQ(found[i].fetches[k].lod(), expected[i].fetches[k].lod())
          << "run " << i << ": " << workload.runs[i].fetches[k];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRaggedPrograms, ::testing::Range(uint64_t{0}, kPrograms));

}  // namespace
}  // namespace skiff::harness
