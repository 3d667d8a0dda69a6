// The collective ops that move numbers between ranks: c_allgather, c_broadcast, c_reducescatter.
// And what all collective ops refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tests/harness/error_text.h"
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

Op OneToOne(const std::string& type, const AttributeMap& attrs = {}) {
  Op op(type);
  op.attrs = attrs;
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"});
  return op;
}

std::vector<NamedTensors> InputsOfRanks(int32_t ranks, const Shape& shape, DType dtype) {
  std::vector<NamedTensors> inputs;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    Array drawn = IsFloat(dtype) ? Uniform(shape, static_cast<uint64_t>(rank))
                                 : Integers(shape, static_cast<uint64_t>(rank), -99, 99);
    drawn.fixed_dtype = false;
    inputs.push_back({{"x", ToTensor(drawn, dtype)}});
  }
  return inputs;
}

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
        const std::vector<NamedTensors> inputs = InputsOfRanks(ranks, {rows, 3}, dtype);
        const RankRun run = RunOpOnRanks(OneToOne("c_allgather", {{"nranks", ranks}}), inputs);
        ASSERT_THAT(run.errors, Each(IsEmpty()));
        for (const NamedTensors& outputs : run.outputs) {
          const Tensor& out = outputs.at("out");
          ASSERT_EQ(out.shape(), (Shape{ranks * rows, 3}));
          for (int32_t rank = 0; rank < ranks; ++rank) {
            EXPECT_EQ(BytesOfRows(out, rank * rows, (rank + 1) * rows),
                      BytesOfRows(inputs[static_cast<size_t>(rank)].at("x"), 0, rows));
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
        const std::vector<NamedTensors> inputs = InputsOfRanks(ranks, {rows, 3}, DType::kFloat16);
        const RankRun run = RunOpOnRanks(OneToOne("c_broadcast", {{"root", root}}), inputs);
        ASSERT_THAT(run.errors, Each(IsEmpty()));
        for (const NamedTensors& outputs : run.outputs) {
          EXPECT_TRUE(SameBits(outputs.at("out"), inputs[static_cast<size_t>(root)].at("x")));
        }
      }
    }
  }
}

TEST(CBroadcast, MayReplaceX) {
  const std::vector<NamedTensors> inputs = InputsOfRanks(3, {1000}, DType::kInt64);
  const RankRun run =
      RunOpOnRanks(OneToOne("c_broadcast", {{"root", 1}}), inputs, 1, {.in_place = {{"x", "out"}}});
  ASSERT_THAT(run.errors, Each(IsEmpty()));
  for (const NamedTensors& outputs : run.outputs) {
    EXPECT_TRUE(SameBits(outputs.at("out"), inputs[1].at("x")));
  }
}

TEST(CBroadcast, SendsNoMoreThanTwiceX) {
  const RankRun run =
      RunOpOnRanks(OneToOne("c_broadcast"), InputsOfRanks(5, {10'000}, DType::kFloat32));
  for (const int64_t bytes : run.bytes_sent) EXPECT_LE(bytes, 2 * 10'000 * 4);
}

TEST(CReducescatter, GivesEachRankItsPartOfTheSum) {
  for (int32_t ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (const int64_t rows : kRows) {
      for (const DType dtype : kDTypes) {
        SCOPED_TRACE(StrCat(rows, " rows of ", dtype, " on ", ranks, " ranks"));
        const std::vector<NamedTensors> inputs = InputsOfRanks(ranks, {ranks * rows, 3}, dtype);
        const RankRun sums = RunOpOnRanks(OneToOne("c_allreduce_sum"), inputs);
        const RankRun run = RunOpOnRanks(OneToOne("c_reducescatter", {{"nranks", ranks}}), inputs);
        ASSERT_THAT(run.errors, Each(IsEmpty()));
        for (int32_t rank = 0; rank < ranks; ++rank) {
          const Tensor& out = run.outputs[static_cast<size_t>(rank)].at("out");
          EXPECT_EQ(BytesOfRows(out, 0, rows),
                    BytesOfRows(sums.outputs[0].at("out"), rank * rows, (rank + 1) * rows));
        }
      }
    }
  }
}

TEST(CollectiveOps, RefuseAnotherNumberOfRanks) {
  for (const char* type : {"c_allgather", "c_reducescatter"}) {
    const Op op = OneToOne(type, {{"nranks", int32_t{3}}});
    const RankRun run = RunOpOnRanks(op, InputsOfRanks(2, {6}, DType::kFloat32));
    EXPECT_THAT(run.errors, Each(HasSubstr(StrCat(type,
                                                  ": nranks = 3, and the run has 2 ranks, expected "
                                                  "nranks = 2"))));
  }
}

TEST(CollectiveOps, RefuseToRunAloneForSeveralRanks) {
  for (const char* type : {"c_allgather", "c_reducescatter", "c_comm_init"}) {
    Op op = OneToOne(type, {{"nranks", int32_t{2}}});
    if (op.type == "c_comm_init") op.SetOutput("Out", {}).SetAttr("rank", int32_t{0});
    const NamedTensors inputs = {{"x", ToTensor(Uniform({6}, 1), DType::kFloat32)}};
    PreparedOp prepared(DefaultOpRegistry(), op, inputs);
    EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { prepared.Run(); }),
                HasSubstr(StrCat(type, ": nranks = 2, and the run has 1 rank")));
  }
}

TEST(CollectiveOps, RefuseARootThatIsNoRank) {
  const RankRun run =
      RunOpOnRanks(OneToOne("c_broadcast", {{"root", 2}}), InputsOfRanks(2, {6}, DType::kFloat32));
  EXPECT_THAT(run.errors, Each(HasSubstr("c_broadcast: root = 2, expected one of the 2 ranks")));
}

TEST(CollectiveOps, RefuseAnotherRing) {
  for (const char* type : {"c_allreduce_sum", "c_allreduce_max", "c_broadcast", "c_allgather",
                           "c_reducescatter", "c_sync_comm_stream"}) {
    const Op op = OneToOne(type, {{"ring_id", int32_t{1}}});
    const NamedTensors inputs = {{"x", ToTensor(Uniform({6}, 1), DType::kFloat32)}};
    EXPECT_THAT(
        ErrorText(ErrorCode::kUnimplemented, [&] { PreparedOp(DefaultOpRegistry(), op, inputs); }),
        HasSubstr("ring_id"))
        << type;
  }
}

}  // namespace
}  // namespace skiff::harness
