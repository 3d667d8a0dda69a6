#include "tests/harness/perturbed_op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"

namespace skiff::harness {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

enum class Bug {
  kNone,
  kWritesPastOutput,
  kLeavesOutputUnwritten,
  kWrongSecondCandidate,
  kThrowsNoError,
};

// "mark": Out = X, but for Out[place] = 0. One bug each, seen only of a place that no case asks
// for.
void RegisterMark(Bug bug, OpRegistry* registry) {
  OpDef def;
  def.type = "mark";
  def.doc = "Out = X, but for Out[place] = 0.";
  def.inputs = {{.name = "X"}};
  def.outputs = {{.name = "Out"}};
  def.attrs = {{.name = "place", .type = AttrType::kInt, .default_value = Attribute(int32_t{1})}};
  def.no_gradient_reason = "none";
  def.infer = [bug](OpContext& context) {
    const auto place = context.Attr<int32_t>("place");
    const int64_t count = context.Input("X").shape.element_count();
    if (bug == Bug::kThrowsNoError && place == -2) throw std::logic_error("a mistake");
    const bool allowed = place >= 0 && (place < count || (bug != Bug::kNone && place == count));
    SKIFF_ENFORCE(allowed, kOutOfRange, "mark: place ", place);
    context.SetOutputLike("Out", "X");
  };
  registry->Add(std::move(def));
  const auto add = [&](const std::string& name, bool is_wrong) {
    const auto prepare = [bug, is_wrong](PrepareContext& context) {
      const auto place = context.Attr<int32_t>("place");
      return MakeKernel([=](const KernelContext& run) {
        const int64_t count = run.output(0).element_count();
        auto* out = run.output(0).data<float>();
        if (bug == Bug::kLeavesOutputUnwritten && place == 0) return;
        std::copy_n(run.input(0).data<float>(), count, out);
        if (bug == Bug::kWritesPastOutput && place == count) out[place] = 1.0F;
        if (place >= 0 && place < count) out[place] = is_wrong && place == 7 ? 1.0F : 0.0F;
      });
    };
    registry->AddKernel("mark", {.name = name, .dtype = DType::kFloat32, .prepare = prepare});
  };
  add("plain", false);
  if (bug == Bug::kWrongSecondCandidate) add("second", true);
}

OpCase MarkCase() {
  OpCase op_case;
  op_case.name = "last_place";
  op_case.type = "mark";
  op_case.inputs = {{"X", {Uniform({9}, 1)}}};
  op_case.attrs = {{"place", int32_t{8}}};
  op_case.outputs = {{"Out", 1}};
  op_case.dtypes = {DType::kFloat32};
  return op_case;
}

PerturbationReport Report(Bug bug, const OpCase& op_case = MarkCase()) {
  OpRegistry registry;
  RegisterMark(bug, &registry);
  return CheckPerturbations(registry, op_case);
}

std::vector<std::string> Problems(Bug bug) { return Report(bug).problems; }

TEST(PerturbedOp, IsRefusedOrComputes) {
  const PerturbationReport report = Report(Bug::kNone);
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_GT(report.computed, 0);
  EXPECT_GT(report.refused, 0);
}

TEST(PerturbedOp, WhoseKernelGoesWrongIsAProblem) {
  EXPECT_THAT(
      Problems(Bug::kWritesPastOutput),
      Contains("mark/last_place float32: mark with place = 9, candidate plain: wrote out of the "
               "bounds of output Out.0"));
  EXPECT_THAT(Problems(Bug::kLeavesOutputUnwritten),
              UnorderedElementsAre(
                  "mark/last_place float32: mark with place = 0, candidate plain: Out.0 depends on "
                  "leftovers in memory"));
  EXPECT_THAT(Problems(Bug::kWrongSecondCandidate),
              Contains(HasSubstr("mark with place = 7, candidate second: Out.0: index [7]")));
  EXPECT_THAT(Problems(Bug::kThrowsNoError),
              UnorderedElementsAre(
                  HasSubstr("mark with place = -2: threw an exception that isn't an Error")));
}

TEST(PerturbedOp, IsNoneOfACaseOfManyElements) {
  OpCase large = MarkCase();
  large.inputs["X"] = {Uniform({5000}, 1)};
  EXPECT_EQ(Report(Bug::kNone, large).computed, 0);
  OpCase benchmark = MarkCase();
  benchmark.benchmark_only = true;
  EXPECT_EQ(Report(Bug::kNone, benchmark).computed, 0);
}

std::vector<std::string> Descriptions(const std::vector<PerturbedOp>& perturbed) {
  std::vector<std::string> descriptions;
  for (const PerturbedOp& one : perturbed) descriptions.push_back(one.what);
  return descriptions;
}

TEST(Perturbations, ChangeEachAttributeAndArgument) {
  OpDef def;
  def.type = "any";
  def.inputs = {{.name = "X"}};
  def.outputs = {{.name = "Out"}};
  def.attrs = {{.name = "flag", .type = AttrType::kBool, .default_value = Attribute(true)},
               {.name = "mode", .type = AttrType::kString, .default_value = std::nullopt},
               {.name = "axes", .type = AttrType::kInts, .default_value = std::nullopt}};
  Op op("any");
  op.SetInput("X", {"X.0"}).SetOutput("Out", {"Out.0"});
  op.SetAttr("mode", Attribute(std::string("a")));
  op.SetAttr("axes", Attribute(std::vector<int32_t>{4}));
  const std::vector<std::string> found =
      Descriptions(PerturbationsOf(def, op, {{"X.0", ToTensor(Uniform({3}, 1), DType::kFloat32)}}));
  for (const char* expected : {"flag = false",
                               "flag = \"of another type\"",
                               "without attribute flag",
                               "mode = \"\"",
                               "mode = 1",
                               "axes = ints []",
                               "axes = ints [4, 4]",
                               "axes = ints [3]",
                               "axes = ints [5]",
                               "axes = ints [-1]",
                               "axes = ints [-2147483648]",
                               "axes = ints [2147483647]",
                               "X.0 of shape []",
                               "X.0 of shape [0]",
                               "X.0 of shape [2]",
                               "X.0 of shape [4]",
                               "X.0 of shape [3, 2]",
                               "X.0 of shape [1099511627776, 0]",
                               "X.0 of float64",
                               "X.0 of int64",
                               "X of 0 arguments",
                               "X of 2 arguments"}) {
    EXPECT_THAT(found, Contains(expected));
  }
}

TEST(Perturbations, MakeAllInputsEmptyWithHugeDimsThatFitEachOther) {
  OpDef def;
  def.type = "any";
  def.inputs = {{.name = "X"}, {.name = "Y"}};
  Op op("any");
  op.SetInput("X", {"X.0"}).SetInput("Y", {"Y.0"});
  const auto tensor = [](const Shape& shape) {
    return ToTensor(Uniform(shape, 1), DType::kFloat32);
  };
  const std::vector<PerturbedOp> all =
      PerturbationsOf(def, op, {{"X.0", tensor({3, 4})}, {"Y.0", tensor({4, 3, 3})}});
  const auto found =
      std::ranges::find(all, "dims of 0 for 3 and 1099511627776 for 4", &PerturbedOp::what);
  ASSERT_NE(found, all.end());
  EXPECT_EQ(found->inputs.at("X.0").shape(), (Shape{0, int64_t{1} << 40}));
  EXPECT_EQ(found->inputs.at("Y.0").shape(), (Shape{int64_t{1} << 40, 0, 0}));
  // No tensor has two dims of 2^40.
  EXPECT_THAT(Descriptions(all), Not(Contains("dims of 0 for 4 and 1099511627776 for 3")));
}

}  // namespace
}  // namespace skiff::harness
