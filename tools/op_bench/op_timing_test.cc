#include "tools/op_bench/op_timing.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"

namespace skiff {
namespace {

SlotDef Slot(const std::string& name) { return {.name = name, .doc = "matrix"}; }

// An op of `type` whose only kernel does nothing.
void AddIdle(const std::string& type, std::vector<SlotDef> inputs, const std::string& output,
             std::vector<AttrDef> attrs, const Shape& shape, OpRegistry* registry) {
  OpDef def;
  def.type = type;
  def.doc = "Does nothing.";
  def.inputs = std::move(inputs);
  def.outputs = {Slot(output)};
  def.attrs = std::move(attrs);
  def.infer = [=](OpContext& context) {
    context.SetOutput(output, shape, context.inputs()[0].dtype);
  };
  def.no_gradient_reason = "it is a stand-in";
  registry->Add(std::move(def));
  registry->AddCpuKernels<float, double>(
      type, []<typename T>(PrepareContext&) { return MakeKernel([](const KernelContext&) {}); });
}

harness::OpCase CaseOf(const std::string& type, harness::Arrays inputs, const std::string& output) {
  harness::OpCase op_case;
  op_case.name = "tiny";
  op_case.type = type;
  op_case.inputs = std::move(inputs);
  op_case.outputs = {{output, 1}};
  return op_case;
}

OpTiming TimeBriefly(const OpRegistry& registry, const harness::OpCase& op_case,
                     DType dtype = DType::kFloat32) {
  return TimeCase(registry, op_case, {.dtype = dtype, .least_seconds = 0, .least_runs = 3});
}

TEST(TimeCase, ReportsRunsBytesAndCandidate) {
  OpRegistry registry;
  AddIdle("idle", {Slot("X")}, "Out", {}, {5}, &registry);
  const harness::OpCase op_case = CaseOf("idle", {{"X", {harness::Uniform({2, 3}, 1)}}}, "Out");
  const OpTiming timing = TimeBriefly(registry, op_case);
  EXPECT_EQ(timing.candidate, "plain");
  EXPECT_EQ(timing.runs, 3);
  EXPECT_EQ(timing.bytes, (6 + 5) * 4);
  EXPECT_GE(timing.median_seconds, 0);
  EXPECT_FALSE(timing.flops.has_value());
  EXPECT_EQ(TimeBriefly(registry, op_case, DType::kFloat64).bytes, (6 + 5) * 8);
  EXPECT_THROW(TimeBriefly(registry, op_case, DType::kInt32), Error);
}

TEST(EstimateFlops, CountsMultiplicationsAndAdditions) {
  OpRegistry registry;
  const AttrDef columns{
      .name = "x_num_col_dims", .type = AttrType::kInt, .default_value = 1, .doc = "columns"};
  const AttrDef transposed{
      .name = "trans_x", .type = AttrType::kBool, .default_value = false, .doc = "transposed"};
  AddIdle("mul", {Slot("X"), Slot("Y")}, "Out", {columns}, {2, 7}, &registry);
  AddIdle("matmul_v2", {Slot("X"), Slot("Y")}, "Out", {transposed}, {4, 2, 7}, &registry);
  AddIdle("conv2d", {Slot("Input"), Slot("Filter")}, "Output", {}, {1, 6, 5, 5}, &registry);
  const auto flops = [&](const std::string& type, const Shape& x, const Shape& y) {
    const bool convolution = type == "conv2d";
    return TimeBriefly(registry, CaseOf(type,
                                        {{convolution ? "Input" : "X", {harness::Uniform(x, 1)}},
                                         {convolution ? "Filter" : "Y", {harness::Uniform(y, 1)}}},
                                        convolution ? "Output" : "Out"))
        .flops;
  };
  EXPECT_EQ(flops("mul", {2, 3, 5}, {15, 7}), 2 * 15 * 14);
  EXPECT_EQ(flops("matmul_v2", {4, 2, 3}, {4, 3, 7}), 2 * 3 * 56);
  EXPECT_EQ(flops("conv2d", {1, 4, 5, 5}, {6, 4, 3, 3}), 2 * 36 * 150);
}

}  // namespace
}  // namespace skiff
