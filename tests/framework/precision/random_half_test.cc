// Random programs in bfloat16 and float16 compute the bits of float32 programs that round after
// each op: their losses, their gradients, all other results, and the scope after each step.
//
//   {Out: [y]} = tanh(X: [x])       {Out: [y.exact]} = tanh(X: [x])
//                               ↔   {Out: [y.half]} = cast(X: [y.exact])
//                                   {Out: [y]} = cast(X: [y.half])
//
// On the right no op but casts sees half. So this shows that the rewriting, the shape rules and the
// kernels in half, and the pass widen agree with the rule of docs/precision.md: an op computes in
// float32, and rounds its results once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/pass_check.h"
#include "tests/harness/random_ragged_workload.h"
#include "tests/harness/random_workload.h"
#include "tests/harness/round_like_half.h"

namespace skiff::harness {
namespace {

constexpr size_t kMaxShown = 5;

Workload Rounded(const Workload& half) {
  Workload rounded = half;
  for (auto& program : rounded.programs) program = RoundedLikeHalf(DefaultOpRegistry(), *program);
  if (half.startup != nullptr) {
    rounded.startup = RoundedLikeHalf(DefaultOpRegistry(), *half.startup);
  }
  for (WorkloadRun& run : rounded.runs) {
    for (auto& [name, tensor] : run.feeds) {
      if (IsHalf(tensor.dtype())) tensor = Cast(tensor, DType::kFloat32);
    }
  }
  return rounded;
}

// Returns the first few differences of all runs.
std::vector<std::string> Differences(const Workload& half, const CompileOptions& options) {
  std::vector<std::string> differences;
  const auto compare = [&](size_t run, const std::string& name, const Tensor& a, const Tensor& b) {
    const std::string difference = NumberDifference(a, b);
    if (difference.empty() || differences.size() >= kMaxShown) return;
    differences.push_back(StrCat(half.name, ", run ", run, ": ", name, " ", difference));
  };
  const Workload in_float32 = Rounded(half);
  const std::vector<RunTrace> found = RunWorkload(half, options);
  const std::vector<RunTrace> expected = RunWorkload(in_float32, NoPasses().options);
  for (size_t i = 0; i < half.runs.size(); ++i) {
    for (size_t k = 0; k < half.runs[i].fetches.size(); ++k) {
      compare(i, half.runs[i].fetches[k], found[i].fetches[k], expected[i].fetches[k]);
    }
    for (const auto& [name, tensor] : found[i].after) {
      compare(i, name, tensor, expected[i].after.at(name));
    }
  }
  return differences;
}

PrecisionOptions PrecisionOf(uint64_t seed) {
  return {.dtype = seed % 2 == 0 ? DType::kBFloat16 : DType::kFloat16,
          .level = seed % 4 < 2 ? PrecisionLevel::kParameters : PrecisionLevel::kCasts};
}

// No passes, and no kernels that round in another order.
CompileOptions Options() {
  CompileOptions options = NoPasses().options;
  options.kernels = WidenedInsteadOfNative(DefaultOpRegistry(), PlaceKind::kCpu);
  return options;
}

class RandomProgramsInHalf : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomProgramsInHalf, HaveTheBitsOfRoundedFloat32) {
  const Workload workload = RandomWorkload(DefaultOpRegistry(), AllCases(), GetParam(),
                                           {.precision = PrecisionOf(GetParam())});
  EXPECT_THAT(Differences(workload, Options()), ::testing::IsEmpty());
}

// Loops over ragged batches, arrays, and lookups with sparse gradients.
class RandomRaggedProgramsInHalf : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomRaggedProgramsInHalf, HaveTheBitsOfRoundedFloat32) {
  const Workload workload =
      RandomRaggedWorkload(DefaultOpRegistry(), GetParam(), {.precision = PrecisionOf(GetParam())});
  EXPECT_THAT(Differences(workload, Options()), ::testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProgramsInHalf, ::testing::Range<uint64_t>(0, 60));
INSTANTIATE_TEST_SUITE_P(Seeds, RandomRaggedProgramsInHalf, ::testing::Range<uint64_t>(0, 20));

}  // namespace
}  // namespace skiff::harness
