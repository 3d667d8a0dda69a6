// c_allreduce_sum and c_allreduce_max on several ranks: the bits of a plain loop in the order of
// ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "operators/common/half.h"
#include "tests/operators/collective/rank_lists.h"
#include "tests/operators/collective/rank_run.h"

namespace skiff::harness {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Small and large, odd, none, and more than a piece of messages holds.
constexpr int64_t kCounts[] = {0, 1, 2, 7, 2049, 300'007};
constexpr int32_t kMostRanks = 5;

// Returns the elements that all ranks are expected to get, from combine(a, b), in the dtype in
// which ranks compute.
template <typename T, typename Combine>
std::vector<WideType<T>> Expected(const std::vector<NamedTensors>& inputs, const Combine& combine) {
  std::vector<WideType<T>> all;
  for (size_t rank = 0; rank < inputs.size(); ++rank) {
    const Tensor& x = inputs[rank].at("X.0");
    for (int64_t i = 0; i < x.element_count(); ++i) {
      const auto next = static_cast<WideType<T>>(x.data<T>()[i]);
      if (rank == 0) {
        all.push_back(next);
      } else {
        all[static_cast<size_t>(i)] = combine(all[static_cast<size_t>(i)], next);
      }
    }
  }
  return all;
}

// `Result`: the dtype of Out.
template <typename T, typename Result = T>
void ExpectSums(const Op& op, int32_t ranks, int64_t count, bool mean, bool in_place = false) {
  SCOPED_TRACE(StrCat(op.type, " of ", count, " ", kDTypeOf<T>, " on ", ranks, " ranks"));
  const std::vector<NamedTensors> inputs = DrawInputs(ranks, {{count}}, kDTypeOf<T>);
  const RankRun run =
      RunOpOnRanks(op, inputs, static_cast<uint64_t>(ranks + count),
                   {.in_place = in_place ? VariablePairs{{"X.0", "Out.0"}} : VariablePairs()});
  ASSERT_THAT(run.errors, Each(IsEmpty()));
  using Wide = WideType<T>;
  std::vector<Wide> expected =
      Expected<T>(inputs, [](Wide a, Wide b) { return static_cast<Wide>(a + b); });
  if (mean) {
    for (Wide& sum : expected) sum *= static_cast<Wide>(1.0 / ranks);
  }
  for (const NamedTensors& outputs : run.outputs) {
    const Tensor& out = outputs.at("Out.0");
    ASSERT_EQ(out.dtype(), kDTypeOf<Result>);
    ASSERT_EQ(out.element_count(), count);
    for (int64_t i = 0; i < count; ++i) {
      const Result rounded(expected[static_cast<size_t>(i)]);
      ASSERT_EQ(std::memcmp(&out.data<Result>()[i], &rounded, sizeof(Result)), 0)
          << "element " << i;
    }
  }
}

TEST(CAllreduceSum, AddsInTheOrderOfRanks) {
  const Op op = ListOp("c_allreduce_sum", 1);
  for (int32_t ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (const int64_t count : kCounts) {
      ExpectSums<float>(op, ranks, count, false);
      ExpectSums<double>(op, ranks, count, false);
      ExpectSums<int32_t>(op, ranks, count, false);
      ExpectSums<int64_t>(op, ranks, count, false);
    }
  }
}

TEST(CAllreduceSum, MultipliesByTheShareOfARankAfterTheLastAddition) {
  Op op = ListOp("c_allreduce_sum", 1);
  op.SetAttr("mean", true);
  for (int32_t ranks = 1; ranks <= kMostRanks; ++ranks) {
    ExpectSums<float>(op, ranks, 2049, true);
    ExpectSums<double>(op, ranks, 2049, true);
  }
}

TEST(CAllreduceSum, AddsHalfInFloat32AndRoundsOnce) {
  for (const bool mean : {false, true}) {
    Op op = ListOp("c_allreduce_sum", 1);
    op.SetAttr("mean", mean);
    for (int32_t ranks = 1; ranks <= kMostRanks; ++ranks) {
      for (const int64_t count : kCounts) {
        ExpectSums<Float16>(op, ranks, count, mean);
        ExpectSums<BFloat16>(op, ranks, count, mean);
      }
    }
  }
}

TEST(CAllreduceSum, LeavesSumsOfHalfInFloat32IfAsked) {
  Op op = ListOp("c_allreduce_sum", 1);
  op.SetAttr("mean", true).SetAttr("out_dtype", static_cast<int32_t>(DType::kFloat32));
  for (int32_t ranks = 1; ranks <= kMostRanks; ++ranks) {
    ExpectSums<Float16, float>(op, ranks, 2049, true);
    ExpectSums<BFloat16, float>(op, ranks, 300'007, true);
  }
}

TEST(CAllreduceSum, MayReplaceX) {
  const Op op = ListOp("c_allreduce_sum", 1);
  for (int32_t ranks = 1; ranks <= kMostRanks; ++ranks) {
    ExpectSums<float>(op, ranks, 300'007, false, /*in_place=*/true);
    ExpectSums<BFloat16>(op, ranks, 7, false, /*in_place=*/true);
  }
}

// Half goes out in two bytes.
TEST(CAllreduceSum, SendsTwiceTheShareOfTheOtherRanks) {
  for (int32_t ranks = 2; ranks <= kMostRanks; ++ranks) {
    const int64_t count = 27'720;  // a multiple of all numbers of ranks
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      const RankRun run =
          RunOpOnRanks(ListOp("c_allreduce_sum", 1), DrawInputs(ranks, {{count}}, dtype));
      EXPECT_THAT(run.bytes_sent, Each(2 * (ranks - 1) * count / ranks * SizeOf(dtype)));
    }
  }
}

// The threads add in drawn orders, so the sums of floats are right within rounding.
TEST(CAllreduceSum, AddsInAnyOrderIfThatIsFast) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    for (const int32_t out_dtype : {-1, IsHalf(dtype) ? 5 : -1}) {
      for (const int64_t count : kCounts) {
        SCOPED_TRACE(StrCat(count, " ", dtype, ", out_dtype ", out_dtype));
        Op op = ListOp("c_allreduce_sum", 1);
        op.SetAttr("order", std::string("fast")).SetAttr("mean", true);
        op.SetAttr("out_dtype", out_dtype);
        const std::vector<NamedTensors> inputs = DrawInputs(3, {{count}}, dtype);
        const RankRun run = RunOpOnRanks(op, inputs);
        ASSERT_THAT(run.errors, Each(IsEmpty()));
        // They are the library's: the op itself sends nothing.
        EXPECT_THAT(run.bytes_sent, Each(0));
        const Array found = ToArray(run.outputs[0].at("Out.0"));
        for (int32_t rank = 0; rank < 3; ++rank) {
          EXPECT_TRUE(SameBits(run.outputs[rank].at("Out.0"), run.outputs[0].at("Out.0")));
        }
        std::vector<double> means(static_cast<size_t>(count), 0);
        for (const NamedTensors& of_rank : inputs) {
          const Array x = ToArray(of_rank.at("X.0"));
          for (size_t i = 0; i < means.size(); ++i) means[i] += x.values[i] / 3;
        }
        for (size_t i = 0; i < means.size(); ++i) {
          const double tolerance = IsHalf(dtype) && out_dtype < 0 ? 4e-3 : 1e-6;
          ASSERT_NEAR(found.values[i], means[i], tolerance) << "element " << i;
        }
      }
    }
  }
}

// Before the last run of a round (gradient_merge), nothing is sent.
TEST(CAllreduceSum, TakesXAloneIfAllRanksSkip) {
  for (const bool skip : {true, false}) {
    Op op = ListOp("c_allreduce_sum", 1, {{"mean", true}});
    std::vector<NamedTensors> inputs = DrawInputs(3, {{100}}, DType::kFloat32);
    AddSkip(skip, &op, &inputs);
    const RankRun run = RunOpOnRanks(op, inputs);
    ASSERT_THAT(run.errors, Each(IsEmpty()));
    for (size_t rank = 0; rank < inputs.size(); ++rank) {
      EXPECT_EQ(run.bytes_sent[rank] == 0, skip);
      EXPECT_EQ(SameBits(run.outputs[rank].at("Out.0"), inputs[rank].at("X.0")), skip);
    }
  }
}

// Rank 0 has 10 elements and expects a slice of 5 of them from rank 1. Both ranks report it.
TEST(CAllreduceSum, RefusesRanksWithOtherElements) {
  const auto errors_with = [](int64_t elements_of_rank_1) {
    std::vector<NamedTensors> inputs = DrawInputs(2, {{10}}, DType::kFloat32);
    inputs[1] = DrawInputs(1, {{elements_of_rank_1}}, DType::kFloat32)[0];
    return RunOpOnRanks(ListOp("c_allreduce_sum", 1), inputs).errors;
  };
  EXPECT_THAT(errors_with(9), Each(HasSubstr("rank 1 sends 16 bytes to rank 0, which expects 20")));
  EXPECT_THAT(errors_with(11),
              Each(HasSubstr("rank 0 sends 20 bytes to rank 1, which expects 24")));
  EXPECT_THAT(errors_with(0),
              Each(AnyOf(HasSubstr("rank 1 sends 0 bytes to rank 0, which expects 20"),
                         HasSubstr("rank 0 sends 20 bytes to rank 1, which expects 0"))));
}

TEST(CAllreduceMax, TakesTheLargestOfAllRanks) {
  const Op op = ListOp("c_allreduce_max", 1);
  for (int32_t ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (const int64_t count : kCounts) {
      for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kFloat16}) {
        const std::vector<NamedTensors> inputs = DrawInputs(ranks, {{count}}, dtype);
        const RankRun run = RunOpOnRanks(op, inputs, static_cast<uint64_t>(count));
        ASSERT_THAT(run.errors, Each(IsEmpty()));
        VisitDType<float, int64_t, Float16>(dtype, "", [&]<typename T>(T) {
          using Wide = WideType<T>;
          const std::vector<Wide> expected =
              Expected<T>(inputs, [](Wide a, Wide b) { return std::max(a, b); });
          for (const NamedTensors& outputs : run.outputs) {
            for (int64_t i = 0; i < count; ++i) {
              ASSERT_EQ(static_cast<Wide>(outputs.at("Out.0").data<T>()[i]),
                        expected[static_cast<size_t>(i)]);
            }
          }
        });
      }
    }
  }
}

TEST(CAllreduceMax, IsNaNWhereARankHasNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const auto run_with = [&](const std::vector<std::vector<double>>& of_ranks) {
    std::vector<NamedTensors> inputs;
    for (const std::vector<double>& values : of_ranks) {
      inputs.push_back({{"X.0", ToTensor(Values({2}, values), DType::kFloat32)}});
    }
    return ToArray(RunOpOnRanks(ListOp("c_allreduce_max", 1), inputs).outputs[0].at("Out.0"));
  };
  for (const Array& found : {run_with({{nan, -1}, {infinity, -infinity}, {0, -2}}),
                             run_with({{1, -1}, {nan, -infinity}, {infinity, -2}}),
                             run_with({{1, -1}, {infinity, -infinity}, {nan, -2}})}) {
    EXPECT_TRUE(std::isnan(found.values[0]));
    EXPECT_EQ(found.values[1], -1);
  }
}

}  // namespace
}  // namespace skiff::harness
