// c_all_gather_list on several ranks: all get the part of each, wherever parts begin and tensors
// lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tests/harness/case_op.h"
#include "tests/operators/collective/rank_run.h"

namespace skiff::harness {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Odd sizes, tensors without elements, a scalar, and more elements than a message holds.
const std::vector<Shape>& Shapes() {
  static const auto& shapes =
      *new std::vector<Shape>{{5, 7}, {0}, {}, {131, 257}, {17}, {700'000}, {1}, {0}};
  return shapes;
}

int64_t AllElements() {
  int64_t all = 0;
  for (const Shape& shape : Shapes()) all += shape.element_count();
  return all;
}

Op GatherOp(const std::vector<int64_t>& parts) {
  Op op("c_all_gather_list");
  std::vector<std::string> x;
  std::vector<std::string> out;
  for (size_t i = 0; i < Shapes().size(); ++i) {
    x.push_back(VariableName("X", i));
    out.push_back(VariableName("Out", i));
  }
  op.SetInput("X", x).SetOutput("Out", out).SetAttr("parts", parts);
  return op;
}

// Returns tensors in which element k of all, taken one tensor after the other, is k · 10 + rank.
NamedTensors InputsOf(int32_t rank, DType dtype) {
  NamedTensors inputs;
  int64_t k = 0;
  for (size_t i = 0; i < Shapes().size(); ++i) {
    Array array{.shape = Shapes()[i]};
    for (int64_t j = 0; j < Shapes()[i].element_count(); ++j, ++k) {
      array.values.push_back(static_cast<double>(k % 100 * 10 + rank));
    }
    inputs[VariableName("X", i)] = ToTensor(array, dtype);
  }
  return inputs;
}

std::vector<NamedTensors> InputsOfRanks(int32_t ranks, DType dtype) {
  std::vector<NamedTensors> inputs;
  for (int32_t rank = 0; rank < ranks; ++rank) inputs.push_back(InputsOf(rank, dtype));
  return inputs;
}

// Expects each element from the rank to whose part it belongs.
void ExpectParts(const RankRun& run, const std::vector<int64_t>& parts) {
  ASSERT_THAT(run.errors, Each(IsEmpty()));
  for (const NamedTensors& outputs : run.outputs) {
    int64_t k = 0;
    int64_t wrong = 0;
    for (size_t i = 0; i < Shapes().size(); ++i) {
      for (const double found : ToArray(outputs.at(VariableName("Out", i))).values) {
        const auto owner = std::ranges::upper_bound(parts, k) - parts.begin() - 1;
        if (found != static_cast<double>(k % 100 * 10 + owner)) ++wrong;
        ++k;
      }
    }
    EXPECT_EQ(wrong, 0);
  }
}

// Equal parts; borders in the middle of tensors and between them; parts without elements.
std::vector<std::vector<int64_t>> PartsFor(int64_t ranks) {
  const int64_t all = AllElements();
  std::vector<int64_t> equal = {0};
  for (int64_t rank = 1; rank <= ranks; ++rank) equal.push_back(all * rank / ranks);
  std::vector<int64_t> last(static_cast<size_t>(ranks), 0);
  last.push_back(all);
  std::vector<int64_t> first = {0};
  first.resize(static_cast<size_t>(ranks) + 1, all);
  std::vector<int64_t> small = {0};
  for (int64_t rank = 1; rank < ranks; ++rank) small.push_back(34 + rank);
  small.push_back(all);
  return {equal, last, first, small};
}

TEST(CAllGatherList, GivesAllRanksAllParts) {
  for (int32_t ranks = 1; ranks <= 5; ++ranks) {
    for (const std::vector<int64_t>& parts : PartsFor(ranks)) {
      for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt64}) {
        SCOPED_TRACE(StrCat(dtype, ", parts ", Join(parts, ", ")));
        ExpectParts(RunOpOnRanks(GatherOp(parts), InputsOfRanks(ranks, dtype)), parts);
      }
    }
  }
}

TEST(CAllGatherList, MayReplaceX) {
  VariablePairs in_place;
  for (size_t i = 0; i < Shapes().size(); ++i) {
    in_place.emplace_back(VariableName("X", i), VariableName("Out", i));
  }
  for (const std::vector<int64_t>& parts : PartsFor(3)) {
    const RankRun run =
        RunOpOnRanks(GatherOp(parts), InputsOfRanks(3, DType::kFloat32), 1, {.in_place = in_place});
    ExpectParts(run, parts);
  }
}

TEST(CAllGatherList, SendsEachPartOnceToEachRank) {
  const std::vector<int64_t> parts = PartsFor(3)[0];
  const RankRun run = RunOpOnRanks(GatherOp(parts), InputsOfRanks(3, DType::kFloat32));
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(run.bytes_sent[rank], 2 * 4 * (parts[rank + 1] - parts[rank]));
  }
}

TEST(CAllGatherList, RefusesPartsOfOtherRanks) {
  const RankRun run =
      RunOpOnRanks(GatherOp({0, 5, AllElements()}), InputsOfRanks(3, DType::kFloat32));
  EXPECT_THAT(run.errors, Each(HasSubstr("nranks = 2, and the run has 3 ranks")));
}

TEST(CAllGatherList, RefusesPartsThatAreNotAllElements) {
  for (const std::vector<int64_t>& parts :
       {std::vector<int64_t>{}, {0}, {1, AllElements()}, {0, 9, 8, AllElements()}, {0, 5}}) {
    const Op op = GatherOp(parts);
    const RankRun run = RunOpOnRanks(op, InputsOfRanks(1, DType::kFloat32));
    EXPECT_THAT(run.errors[0], HasSubstr("expected where the part of each rank begins"));
  }
}

}  // namespace
}  // namespace skiff::harness
