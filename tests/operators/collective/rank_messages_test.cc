// The collective ops that move numbers between ranks: c_allgather, c_broadcast, c_reducescatter.
// And what all collective ops refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tests/harness/error_text.h"
#include "tests/operators/collective/rank_lists.h"
#include "tests/operators/collective/rank_run.h"

namespace skiff::harness {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int32_t kMostRanks = 5;
constexpr int64_t kRows[] = {0, 1, 3, 2000, 60'001};
constexpr DType kDTypes[] = {DType::kFloat32,  DType::kFloat64, DType::kFloat16,
                             DType::kBFloat16, DType::kInt32,   DType::kInt64};

// Returns rows [begin, end) of a tensor with rows of `width` elements.
std::vector<std::byte> BytesOfRows(const Tensor& tensor, int64_t begin, int64_t end) {
  const int64_t row =
      tensor.shape().element_count(1, tensor.shape().rank()) * SizeOf(tensor.dtype());
  const auto* data = static_cast<const std::byte*>(tensor.raw_data());
  return {data + begin * row, data + end * row};
}

TEST(CAllgather, PutsTheRowsOfAllRanksInOrder) {
  for (int32_t ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (const int64_t rows : kRows) {
      for (const DType dtype : kDTypes) {
        SCOPED_TRACE(StrCat(rows, " rows of ", dtype, " on ", ranks, " ranks"));
        const std::vector<NamedTensors> inputs = DrawInputs(ranks, {{rows, 3}}, dtype);
        const RankRun run = RunOpOnRanks(ListOp("c_allgather", 1, {{"nranks", ranks}}), inputs);
        ASSERT_THAT(run.errors, Each(IsEmpty()));
        for (const NamedTensors& outputs : run.outputs) {
          const Tensor& out = outputs.at("Out.0");
          ASSERT_EQ(out.shape(), (Shape{ranks * rows, 3}));
          for (int32_t rank = 0; rank < ranks; ++rank) {
            EXPECT_EQ(BytesOfRows(out, rank * rows, (rank + 1) * rows),
                      BytesOfRows(inputs[static_cast<size_t>(rank)].at("X.0"), 0, rows));
          }
        }
      }
    }
  }
}

TEST(CBroadcast, GivesAllRanksWhatTheRootHas) {
  for (int32_t ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (int32_t root = 0; root < ranks; ++root) {
      for (const int64_t rows : kRows) {
        SCOPED_TRACE(StrCat(rows, " rows of rank ", root, " of ", ranks));
        const std::vector<NamedTensors> inputs = DrawInputs(ranks, {{rows, 3}}, DType::kFloat16);
        const RankRun run = RunOpOnRanks(ListOp("c_broadcast", 1, {{"root", root}}), inputs);
        ASSERT_THAT(run.errors, Each(IsEmpty()));
        for (const NamedTensors& outputs : run.outputs) {
          EXPECT_TRUE(SameBits(outputs.at("Out.0"), inputs[static_cast<size_t>(root)].at("X.0")));
        }
      }
    }
  }
}

TEST(CBroadcast, MayReplaceX) {
  const std::vector<NamedTensors> inputs = DrawInputs(3, {{1000}}, DType::kInt64);
  const RankRun run = RunOpOnRanks(ListOp("c_broadcast", 1, {{"root", 1}}), inputs, 1,
                                   {.in_place = {{"X.0", "Out.0"}}});
  ASSERT_THAT(run.errors, Each(IsEmpty()));
  for (const NamedTensors& outputs : run.outputs) {
    EXPECT_TRUE(SameBits(outputs.at("Out.0"), inputs[1].at("X.0")));
  }
}

TEST(CBroadcast, SendsNoMoreThanTwiceX) {
  const RankRun run =
      RunOpOnRanks(ListOp("c_broadcast", 1), DrawInputs(5, {{10'000}}, DType::kFloat32));
  for (const int64_t bytes : run.bytes_sent) EXPECT_LE(bytes, 2 * 10'000 * 4);
}

TEST(CReducescatter, GivesEachRankItsPartOfTheSum) {
  for (int32_t ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (const int64_t rows : kRows) {
      for (const DType dtype : kDTypes) {
        SCOPED_TRACE(StrCat(rows, " rows of ", dtype, " on ", ranks, " ranks"));
        const std::vector<NamedTensors> inputs = DrawInputs(ranks, {{ranks * rows, 3}}, dtype);
        const RankRun sums = RunOpOnRanks(ListOp("c_allreduce_sum", 1), inputs);
        const RankRun run = RunOpOnRanks(ListOp("c_reducescatter", 1, {{"nranks", ranks}}), inputs);
        ASSERT_THAT(run.errors, Each(IsEmpty()));
        for (int32_t rank = 0; rank < ranks; ++rank) {
          const Tensor& out = run.outputs[static_cast<size_t>(rank)].at("Out.0");
          EXPECT_EQ(BytesOfRows(out, 0, rows),
                    BytesOfRows(sums.outputs[0].at("Out.0"), rank * rows, (rank + 1) * rows));
        }
      }
    }
  }
}

TEST(CollectiveOps, RefuseAnotherNumberOfRanks) {
  for (const char* type : {"c_allgather", "c_reducescatter"}) {
    const Op op = ListOp(type, 1, {{"nranks", int32_t{3}}});
    const RankRun run = RunOpOnRanks(op, DrawInputs(2, {{6}}, DType::kFloat32));
    EXPECT_THAT(run.errors, Each(HasSubstr(StrCat(type,
                                                  ": nranks = 3, and the run has 2 ranks, expected "
                                                  "nranks = 2"))));
  }
}

TEST(CollectiveOps, RefuseToRunAloneForSeveralRanks) {
  for (const char* type : {"c_allgather", "c_reducescatter", "c_comm_init"}) {
    Op op = ListOp(type, 1, {{"nranks", int32_t{2}}});
    if (op.type == "c_comm_init") op.SetOutput("Out", {}).SetAttr("rank", int32_t{0});
    const NamedTensors inputs = {{"X.0", ToTensor(Uniform({6}, 1), DType::kFloat32)}};
    PreparedOp prepared(DefaultOpRegistry(), op, inputs);
    EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { prepared.Run(); }),
                HasSubstr(StrCat(type, ": nranks = 2, and the run has 1 rank")));
  }
}

// Returns the Error of an op on a single rank with these inputs.
std::string RefusalOf(const Op& op, const NamedTensors& inputs) {
  return ErrorText(ErrorCode::kInvalidArgument,
                   [&] { PreparedOp(DefaultOpRegistry(), op, inputs); });
}

TEST(CollectiveOps, RefuseListsOfSeveralDTypesAndXWithoutOut) {
  const NamedTensors alike = DrawInputs(1, {{2}, {3}}, DType::kFloat32)[0];
  NamedTensors mixed = alike;
  mixed["X.1"] = Cast(mixed["X.1"], DType::kFloat64);
  for (const std::string type :
       {"c_allreduce_list", "c_reduce_scatter_list", "c_all_gather_list"}) {
    AttributeMap attrs;
    if (type != "c_allreduce_list") attrs["parts"] = std::vector<int64_t>{0, 5};
    Op op = ListOp(type, 2, attrs);
    EXPECT_THAT(RefusalOf(op, mixed),
                HasSubstr(type + ": X[1] is float64, expected float32 as X[0]"));
    op.SetOutput("Out", {"Out.0"});
    EXPECT_THAT(RefusalOf(op, alike),
                HasSubstr(type + ": output \"Out\" has no argument 1, expected one for each X"));
  }
}

TEST(CollectiveOps, RefuseMeansAndDTypesThatSumsDontHave) {
  const auto refusal = [](DType dtype, const AttributeMap& attrs) {
    return RefusalOf(ListOp("c_allreduce_sum", 1, attrs), DrawInputs(1, {{2}}, dtype)[0]);
  };
  EXPECT_THAT(refusal(DType::kInt32, {{"mean", true}}),
              HasSubstr("c_allreduce_sum: mean = true and X is int32, expected floats"));
  EXPECT_THAT(refusal(DType::kFloat32, {{"out_dtype", int32_t{6}}}),
              HasSubstr("out_dtype = 6 and X is float32, expected -1, 5 as X"));
  EXPECT_THAT(refusal(DType::kFloat16, {{"out_dtype", int32_t{6}}}),
              HasSubstr("out_dtype = 6 and X is float16, expected -1, 4 as X or 5, float32"));
}

TEST(CollectiveOps, RefuseARootThatIsNoRank) {
  const RankRun run =
      RunOpOnRanks(ListOp("c_broadcast", 1, {{"root", 2}}), DrawInputs(2, {{6}}, DType::kFloat32));
  EXPECT_THAT(run.errors, Each(HasSubstr("c_broadcast: root = 2, expected one of the 2 ranks")));
}

TEST(CollectiveOps, RefuseAnotherRing) {
  for (const char* type : {"c_allreduce_sum", "c_allreduce_max", "c_broadcast", "c_allgather",
                           "c_reducescatter", "c_sync_comm_stream"}) {
    const Op op = ListOp(type, 1, {{"ring_id", int32_t{1}}});
    const NamedTensors inputs = {{"X.0", ToTensor(Uniform({6}, 1), DType::kFloat32)}};
    EXPECT_THAT(
        ErrorText(ErrorCode::kUnimplemented, [&] { PreparedOp(DefaultOpRegistry(), op, inputs); }),
        HasSubstr("ring_id"))
        << type;
  }
}

}  // namespace
}  // namespace skiff::harness
