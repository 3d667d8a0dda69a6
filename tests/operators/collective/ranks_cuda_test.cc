// Collective ops on ranks that have a device each: the bits that they give ranks on the CPU. On
// emulated devices, a stand-in for NCCL adds in drawn orders and finds wrong calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "memory/cuda_device.h"
#include "tests/operators/collective/rank_lists.h"
#include "tests/operators/collective/rank_run.h"

namespace skiff::harness {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;

constexpr DType kFloats[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16};
constexpr DType kIntegers[] = {DType::kInt32, DType::kInt64};

class RanksOnDevices : public ::testing::Test {
 protected:
  void SetUp() override {
    if (PlacesOfRanks(2).size() < 2) GTEST_SKIP() << "fewer than two devices, or no kernels";
  }

  // Compares the ops of devices with those of the CPU, for each number of ranks.
  void ExpectBitsOfCpu(const std::string& type, const std::vector<Shape>& shapes, DType dtype,
                       AttributeMap attrs = {}) const {
    for (int32_t ranks = 2; ranks <= most_; ++ranks) {
      SCOPED_TRACE(StrCat(type, " of ", dtype, " on ", ranks, " ranks"));
      if (attrs.contains("nranks")) attrs["nranks"] = ranks;
      const Op op = ListOp(type, shapes.size(), attrs);
      const std::vector<NamedTensors> inputs = DrawInputs(ranks, shapes, dtype);
      const RankRun host = RunOpOnRanks(op, inputs);
      const RankRun device = RunOpOnRanks(op, inputs, 1, {.place = Place::Cuda()});
      ASSERT_THAT(host.errors, Each(IsEmpty()));
      ASSERT_THAT(device.errors, Each(IsEmpty()));
      for (size_t rank = 0; rank < inputs.size(); ++rank) {
        for (const auto& [name, expected] : host.outputs[rank]) {
          EXPECT_TRUE(SameBits(device.outputs[rank].at(name), expected))
              << name << " of rank " << rank;
        }
      }
    }
  }

  const int32_t most_ = std::min(CudaDeviceCount(), 4);
};

TEST_F(RanksOnDevices, AddInTheOrderOfRanks) {
  for (const int64_t count : {0, 1, 5, 2049}) {
    for (const DType dtype : kFloats) {
      ExpectBitsOfCpu("c_allreduce_sum", {{count}}, dtype, {{"mean", true}});
    }
    for (const DType dtype : kIntegers) ExpectBitsOfCpu("c_allreduce_sum", {{count}}, dtype);
  }
}

TEST_F(RanksOnDevices, WidenHalf) {
  for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
    ExpectBitsOfCpu("c_allreduce_list", {{3, 5}, {1000}}, half,
                    {{"mean", true}, {"out_dtype", int32_t{5}}});
  }
}

// The tensors don't lie one after the other: kernels pack them.
TEST_F(RanksOnDevices, AddLists) {
  for (const DType dtype : kFloats) {
    ExpectBitsOfCpu("c_allreduce_list", {{5, 7}, {0}, {}, {131, 17}, {17}}, dtype);
  }
}

TEST_F(RanksOnDevices, TakeTheLargest) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kInt64}) {
    ExpectBitsOfCpu("c_allreduce_max", {{33, 7}}, dtype);
  }
}

TEST_F(RanksOnDevices, GatherAndScatter) {
  for (const int64_t rows : {0, 12, 24'000}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
      ExpectBitsOfCpu("c_allgather", {{rows, 3}}, dtype, {{"nranks", int32_t{0}}});
      ExpectBitsOfCpu("c_reducescatter", {{rows, 3}}, dtype, {{"nranks", int32_t{0}}});
      ExpectBitsOfCpu("c_broadcast", {{rows, 3}}, dtype, {{"root", int32_t{1}}});
    }
  }
}

// The lists don't lie together, and parts begin and end anywhere in them.
TEST_F(RanksOnDevices, GatherAndScatterLists) {
  for (const std::vector<int64_t>& parts : PartsFor(2)) {
    SCOPED_TRACE(StrCat("parts ", Join(parts, ", ")));
    const std::vector<NamedTensors> inputs = DrawInputs(2, OddShapes(), DType::kFloat32);
    const auto run_list = [&](const std::string& type, const AttributeMap& attrs) {
      RankRun run = RunOpOnRanks(ListOp(type, OddShapes().size(), attrs), inputs, 1,
                                 {.place = Place::Cuda()});
      EXPECT_THAT(run.errors, Each(IsEmpty()));
      return std::move(run.outputs);
    };
    const std::vector<NamedTensors> sums = run_list("c_allreduce_list", {});
    const std::vector<NamedTensors> scattered =
        run_list("c_reduce_scatter_list", {{"parts", parts}});
    const std::vector<NamedTensors> gathered = run_list("c_all_gather_list", {{"parts", parts}});
    for (size_t rank = 0; rank < 2; ++rank) {
      const auto part_of = [&](const NamedTensors& tensors, const std::string& slot) {
        return ElementsOf(tensors, slot, parts[rank], parts[rank + 1]);
      };
      EXPECT_TRUE(part_of(scattered[rank], "Out") == part_of(sums[rank], "Out"));
      for (const NamedTensors& outputs : gathered) {
        EXPECT_TRUE(part_of(outputs, "Out") == part_of(inputs[rank], "X"));
      }
    }
  }
}

// The library adds in an order of its own, so sums are right within rounding, and equal on all
// ranks.
TEST_F(RanksOnDevices, AddInAnyOrderIfThatIsFast) {
  for (const DType dtype : kFloats) {
    for (const std::vector<Shape>& shapes :
         {std::vector<Shape>{{2049}}, std::vector<Shape>{{5, 7}, {0}, {131, 17}}}) {
      const std::string type = shapes.size() > 1 ? "c_allreduce_list" : "c_allreduce_sum";
      SCOPED_TRACE(StrCat(type, " of ", dtype));
      const std::vector<NamedTensors> inputs = DrawInputs(most_, shapes, dtype);
      const RankRun host = RunOpOnRanks(ListOp(type, shapes.size(), {{"mean", true}}), inputs);
      const Op fast = ListOp(type, shapes.size(), {{"mean", true}, {"order", std::string("fast")}});
      const RankRun device = RunOpOnRanks(fast, inputs, 1, {.place = Place::Cuda()});
      ASSERT_THAT(host.errors, Each(IsEmpty()));
      ASSERT_THAT(device.errors, Each(IsEmpty()));
      EXPECT_THAT(device.bytes_sent, Each(0));  // all are the library's
      for (const auto& [name, expected] : host.outputs[0]) {
        const Array found = ToArray(device.outputs[0].at(name));
        EXPECT_EQ(FirstDifference(found, ToArray(expected), IsHalf(dtype) ? 1e-2 : 1e-5), "");
        for (const NamedTensors& outputs : device.outputs) {
          EXPECT_TRUE(SameBits(outputs.at(name), device.outputs[0].at(name)));
        }
      }
    }
  }
}

// A library that sums half would have no number for the sum: float16 ends at 65,504, and bfloat16
// has only even numbers there.
TEST_F(RanksOnDevices, AddHalfInFloat32IfThatIsFast) {
  const auto sum_of = [](DType half, double of_rank_0, double of_rank_1) {
    const Op op =
        ListOp("c_allreduce_sum", 1, {{"order", std::string("fast")}, {"out_dtype", int32_t{5}}});
    const RankRun run = RunOpOnRanks(op,
                                     {{{"X.0", ToTensor(Values({1}, {of_rank_0}), half)}},
                                      {{"X.0", ToTensor(Values({1}, {of_rank_1}), half)}}},
                                     1, {.place = Place::Cuda()});
    EXPECT_THAT(run.errors, Each(IsEmpty()));
    return run.outputs[0].at("Out.0").data<float>()[0];
  };
  EXPECT_EQ(sum_of(DType::kFloat16, 60'000, 40'000), 100'000);
  EXPECT_EQ(sum_of(DType::kBFloat16, 256, 1), 257);
}

TEST_F(RanksOnDevices, TakeXAloneIfAllSkip) {
  Op op = ListOp("c_allreduce_sum", 1, {{"mean", true}});
  std::vector<NamedTensors> inputs = DrawInputs(2, {{100}}, DType::kFloat32);
  AddSkip(true, &op, &inputs);
  const RankRun run = RunOpOnRanks(op, inputs, 1, {.place = Place::Cuda()});
  ASSERT_THAT(run.errors, Each(IsEmpty()));
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(SameBits(run.outputs[rank].at("Out.0"), inputs[rank].at("X.0")));
  }
}

}  // namespace
}  // namespace skiff::harness
