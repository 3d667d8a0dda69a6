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
             const Shape& shape, OpRegistry* registry) {
  OpDef def;
  def.type = type;
  def.doc = "Does nothing.";
  def.inputs = std::move(inputs);
  def.outputs = {Slot(output)};
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
  AddIdle("idle", {Slot("X")}, "Out", {5}, &registry);
  const harness::OpCase op_case = CaseOf("idle", {{"X", {harness::Uniform({2, 3}, 1)}}}, "Out");
  const OpTiming timing = TimeBriefly(registry, op_case);
  EXPECT_EQ(timing.candidate, "plain");
  EXPECT_EQ(timing.runs, 3);
  EXPECT_EQ(timing.bytes, (6 + 5) * 4);
  EXPECT_GE(timing.median_seconds, 0);
  EXPECT_FALSE(timing.flop.has_value());
  EXPECT_EQ(TimeBriefly(registry, op_case, DType::kFloat64).bytes, (6 + 5) * 8);
  EXPECT_THROW(TimeBriefly(registry, op_case, DType::kInt32), Error);
}

harness::OpCase ConvolutionCase() {
  return CaseOf("conv2d",
                {{"Input", {harness::Uniform({1, 4, 5, 5}, 1)}},
                 {"Filter", {harness::Uniform({6, 4, 3, 3}, 2)}}},
                "Output");
}

TEST(TimeCase, EstimatesWhatItComputes) {
  EXPECT_EQ(TimeBriefly(DefaultOpRegistry(), ConvolutionCase()).flop, 2 * (6 * 9) * 36);
}

TEST(TimeGradients, TimesTheGradientOpForAllInputsOfFloats) {
  const std::vector<OpTiming> timings = TimeGradients(
      DefaultOpRegistry(), ConvolutionCase(),
      {.dtype = DType::kFloat64, .candidate = "plain", .least_seconds = 0, .least_runs = 3});
  ASSERT_EQ(timings.size(), 1u);
  EXPECT_EQ(timings[0].type, "conv2d_grad");
  EXPECT_EQ(timings[0].name, "tiny");
  EXPECT_EQ(timings[0].candidate, "plain");
  EXPECT_EQ(timings[0].runs, 3);
  // Input, Filter and the gradient of Output, and the gradients of the former.
  EXPECT_EQ(timings[0].bytes, (2 * (100 + 216) + 54) * 8);
  EXPECT_EQ(timings[0].flop, 2 * 2 * (6 * 9) * 36);
}

// An op may have no gradient for some input, such as a mask.
TEST(TimeGradients, TimesOnlyTheGradientsThatTheCaseChecks) {
  harness::OpCase op_case = ConvolutionCase();
  op_case.gradients = {"Filter"};
  const std::vector<OpTiming> timings =
      TimeGradients(DefaultOpRegistry(), op_case, {.least_seconds = 0, .least_runs = 1});
  ASSERT_EQ(timings.size(), 1u);
  EXPECT_EQ(timings[0].bytes, (100 + 216 + 54 + 216) * 4);
}

// As of a sum, whose gradient is a copy for each term.
TEST(TimeGradients, TimesEveryOpOfTheRule) {
  const harness::OpCase op_case =
      CaseOf("sum", {{"X", {harness::Uniform({2, 3}, 1), harness::Uniform({2, 3}, 2)}}}, "Out");
  const std::vector<OpTiming> timings =
      TimeGradients(DefaultOpRegistry(), op_case, {.least_seconds = 0, .least_runs = 1});
  EXPECT_EQ(timings.size(), 2u);
}

TEST(TimeGradients, RefusesAnOpWithoutAGradient) {
  EXPECT_THROW(TimeGradients(DefaultOpRegistry(),
                             CaseOf("isfinite", {{"X", {harness::Uniform({2}, 1)}}}, "Out"), {}),
               Error);
}

}  // namespace
}  // namespace skiff
