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
#include "tests/harness/case_op.h"
#include "tests/operators/collective/rank_run.h"

namespace skiff::harness {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;

constexpr DType kFloats[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16};
constexpr DType kIntegers[] = {DType::kInt32, DType::kInt64};

// Returns an op with lists X and Out.
Op ListOp(const std::string& type, size_t count, const AttributeMap& attrs) {
  Op op(type);
  op.attrs = attrs;
  std::vector<std::string> x;
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) {
    x.push_back(VariableName("X", i));
    out.push_back(VariableName("Out", i));
  }
  op.SetInput("X", x).SetOutput("Out", out);
  return op;
}

std::vector<NamedTensors> DrawInputs(int32_t ranks, const std::vector<Shape>& shapes, DType dtype) {
  std::vector<NamedTensors> inputs(static_cast<size_t>(ranks));
  for (size_t rank = 0; rank < inputs.size(); ++rank) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      const uint64_t seed = 100 * rank + i;
      Array drawn = IsFloat(dtype) ? Uniform(shapes[i], seed) : Integers(shapes[i], seed, -99, 99);
      drawn.fixed_dtype = false;
      inputs[rank][VariableName("X", i)] = ToTensor(drawn, dtype);
    }
  }
  return inputs;
}

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
      ASSERT_THAT(device.errors, Each(IsEmpty()));
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

TEST_F(RanksOnDevices, TakeXAloneIfAllSkip) {
  Op op = ListOp("c_allreduce_sum", 1, {{"mean", true}});
  op.SetInput("Skip", {"skip"});
  std::vector<NamedTensors> inputs = DrawInputs(2, {{100}}, DType::kFloat32);
  for (NamedTensors& of_rank : inputs) {
    of_rank["skip"] = ToTensor(Values({1}, {1.0}, DType::kBool), DType::kBool);
  }
  const RankRun run = RunOpOnRanks(op, inputs, 1, {.place = Place::Cuda()});
  ASSERT_THAT(run.errors, Each(IsEmpty()));
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(SameBits(run.outputs[rank].at("Out.0"), inputs[rank].at("X.0")));
  }
}

}  // namespace
}  // namespace skiff::harness
