// c_reduce_scatter_list on several ranks: each has the bits of c_allreduce_list in its part.
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

Op ScatterOp(AttributeMap attrs, const std::vector<int64_t>& parts) {
  attrs["parts"] = parts;
  return ListOp("c_reduce_scatter_list", OddShapes().size(), attrs);
}

void ExpectPartsOfSums(const AttributeMap& attrs, int32_t ranks, DType dtype,
                       const OpSettings& settings = {}) {
  const std::vector<NamedTensors> inputs = DrawInputs(ranks, OddShapes(), dtype);
  const RankRun sums = RunOpOnRanks(ListOp("c_allreduce_list", OddShapes().size(), attrs), inputs);
  ASSERT_THAT(sums.errors, Each(IsEmpty()));
  for (const std::vector<int64_t>& parts : PartsFor(ranks)) {
    SCOPED_TRACE(StrCat(dtype, ", parts ", Join(parts, ", ")));
    const RankRun run = RunOpOnRanks(ScatterOp(attrs, parts), inputs, 1, settings);
    ASSERT_THAT(run.errors, Each(IsEmpty()));
    for (size_t rank = 0; rank < inputs.size(); ++rank) {
      EXPECT_TRUE(ElementsOf(run.outputs[rank], "Out", parts[rank], parts[rank + 1]) ==
                  ElementsOf(sums.outputs[rank], "Out", parts[rank], parts[rank + 1]))
          << "rank " << rank;
    }
  }
}

TEST(CReduceScatterList, HasTheBitsOfSumsInItsPart) {
  for (int32_t ranks = 1; ranks <= 5; ++ranks) ExpectPartsOfSums({}, ranks, DType::kFloat32);
  ExpectPartsOfSums({{"mean", true}}, 3, DType::kFloat64);
}

TEST(CReduceScatterList, WidensHalf) {
  const AttributeMap attrs = {{"mean", true}, {"out_dtype", int32_t{5}}};
  for (const DType half : {DType::kFloat16, DType::kBFloat16}) ExpectPartsOfSums(attrs, 3, half);
}

TEST(CReduceScatterList, MayReplaceX) {
  ExpectPartsOfSums({}, 3, DType::kFloat32, {.in_place = AllInPlace(OddShapes().size())});
}

// A rank with a large part gets more elements than the tensors have: its part from each rank.
TEST(CReduceScatterList, HasRoomForUnevenPartsOfFewElements) {
  const std::vector<int64_t> parts = {0, 10, 20, 29'990, 30'000};
  const std::vector<NamedTensors> inputs = DrawInputs(4, {{parts.back()}}, DType::kFloat32);
  const RankRun sums = RunOpOnRanks(ListOp("c_allreduce_sum", 1), inputs);
  const RankRun run = RunOpOnRanks(ListOp("c_reduce_scatter_list", 1, {{"parts", parts}}), inputs);
  ASSERT_THAT(run.errors, Each(IsEmpty()));
  const float* const sum = sums.outputs[0].at("Out.0").data<float>();
  for (size_t rank = 0; rank < inputs.size(); ++rank) {
    const float* const found = run.outputs[rank].at("Out.0").data<float>();
    for (int64_t i = parts[rank]; i < parts[rank + 1]; ++i) ASSERT_EQ(found[i], sum[i]) << i;
  }
}

TEST(CReduceScatterList, SendsEachElementOnce) {
  const std::vector<int64_t> parts = PartsFor(3)[0];
  const RankRun run =
      RunOpOnRanks(ScatterOp({}, parts), DrawInputs(3, OddShapes(), DType::kFloat32));
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(run.bytes_sent[rank], 4 * (parts.back() - (parts[rank + 1] - parts[rank])));
  }
}

TEST(CReduceScatterList, RefusesPartsOfOtherRanks) {
  const RankRun run = RunOpOnRanks(ScatterOp({}, {0, 5, AllElements(OddShapes())}),
                                   DrawInputs(3, OddShapes(), DType::kFloat32));
  EXPECT_THAT(run.errors, Each(HasSubstr("c_reduce_scatter_list: parts for 2 ranks, and the run "
                                         "has 3 ranks, expected a part for each")));
  const RankRun few =
      RunOpOnRanks(ScatterOp({}, {0, 5}), DrawInputs(1, OddShapes(), DType::kFloat32));
  EXPECT_THAT(few.errors[0], HasSubstr("expected where the part of each rank begins"));
}

}  // namespace
}  // namespace skiff::harness
