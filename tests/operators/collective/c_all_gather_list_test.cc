// c_all_gather_list on several ranks: all get the part of each, wherever parts begin and tensors
// lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "framework/base/error.h"
#include "tests/operators/collective/rank_lists.h"
#include "tests/operators/collective/rank_run.h"

namespace skiff::harness {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Op GatherOp(const std::vector<int64_t>& parts) {
  return ListOp("c_all_gather_list", OddShapes().size(), {{"parts", parts}});
}

// Expects each part from the rank to which it belongs.
void ExpectParts(const std::vector<int64_t>& parts, int32_t ranks, DType dtype,
                 const OpSettings& settings = {}) {
  SCOPED_TRACE(StrCat(dtype, ", parts ", Join(parts, ", ")));
  const std::vector<NamedTensors> inputs = DrawInputs(ranks, OddShapes(), dtype);
  const RankRun run = RunOpOnRanks(GatherOp(parts), inputs, 1, settings);
  ASSERT_THAT(run.errors, Each(IsEmpty()));
  std::vector<double> expected;
  for (size_t rank = 0; rank < inputs.size(); ++rank) {
    const auto part = ElementsOf(inputs[rank], "X", parts[rank], parts[rank + 1]);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  for (const NamedTensors& outputs : run.outputs) {
    EXPECT_TRUE(ElementsOf(outputs, "Out", 0, parts.back()) == expected);
  }
}

TEST(CAllGatherList, GivesAllRanksAllParts) {
  for (int32_t ranks = 1; ranks <= 5; ++ranks) {
    for (const std::vector<int64_t>& parts : PartsFor(ranks)) {
      ExpectParts(parts, ranks, DType::kFloat32);
    }
  }
  for (const DType dtype : {DType::kFloat64, DType::kInt64}) {
    for (const std::vector<int64_t>& parts : PartsFor(3)) ExpectParts(parts, 3, dtype);
  }
}

TEST(CAllGatherList, MayReplaceX) {
  for (const std::vector<int64_t>& parts : PartsFor(3)) {
    ExpectParts(parts, 3, DType::kFloat32, {.in_place = AllInPlace(OddShapes().size())});
  }
}

TEST(CAllGatherList, SendsEachPartOnceToEachRank) {
  const std::vector<int64_t> parts = PartsFor(3)[0];
  const RankRun run = RunOpOnRanks(GatherOp(parts), DrawInputs(3, OddShapes(), DType::kFloat32));
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(run.bytes_sent[rank], 2 * 4 * (parts[rank + 1] - parts[rank]));
  }
}

TEST(CAllGatherList, RefusesPartsOfOtherRanks) {
  const RankRun run = RunOpOnRanks(GatherOp({0, 5, AllElements(OddShapes())}),
                                   DrawInputs(3, OddShapes(), DType::kFloat32));
  EXPECT_THAT(run.errors, Each(HasSubstr("c_all_gather_list: parts for 2 ranks, and the run has 3 "
                                         "ranks, expected a part for each")));
}

TEST(CAllGatherList, RefusesPartsThatAreNotAllElements) {
  const int64_t all = AllElements(OddShapes());
  for (const std::vector<int64_t>& parts :
       {std::vector<int64_t>{}, {0}, {1, all}, {0, 9, 8, all}, {0, 5}}) {
    const RankRun run = RunOpOnRanks(GatherOp(parts), DrawInputs(1, OddShapes(), DType::kFloat32));
    EXPECT_THAT(run.errors[0], HasSubstr("expected where the part of each rank begins"));
  }
}

}  // namespace
}  // namespace skiff::harness
