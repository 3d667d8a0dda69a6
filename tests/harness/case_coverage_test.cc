#include "tests/harness/case_coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>

#include "framework/op/grad.h"

namespace skiff::harness {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

OpDef CompleteDef(const std::string& type) {
  OpDef def;
  def.type = type;
  def.doc = "Out = X.";
  def.inputs = {{.name = "X", .doc = "input"}};
  def.outputs = {{.name = "Out", .doc = "output"}};
  def.attrs = {{.name = "axis", .type = AttrType::kInt, .default_value = -1, .doc = "axis"}};
  def.infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
  def.no_gradient_reason = "not differentiable";
  return def;
}

OpDef WithGradient(OpDef def, const std::string& gradient_type) {
  def.no_gradient_reason = {};
  def.grad = GradOp(gradient_type, {"Out@GRAD"}, {"X@GRAD"});
  return def;
}

void Add(OpDef def, OpRegistry* registry, bool with_kernel = true) {
  const std::string type = def.type;
  registry->Add(std::move(def));
  if (!with_kernel) return;
  registry->AddCpuKernels<float>(
      type, []<typename T>(PrepareContext&) { return MakeKernel([](const KernelContext&) {}); });
}

OpCase CaseOf(const std::string& type, std::vector<std::string> gradients = {}) {
  OpCase op_case;
  op_case.name = "plain";
  op_case.type = type;
  op_case.inputs = {{"X", {Uniform({2}, 1)}}};
  op_case.outputs = {{"Out", 1}};
  op_case.gradients = std::move(gradients);
  return op_case;
}

// The problems of a registry of one op, `copy`, with one case, after `change`.
std::vector<std::string> ProblemsAfter(const std::function<void(OpDef*)>& change) {
  OpRegistry registry;
  OpDef def = CompleteDef("copy");
  change(&def);
  Add(std::move(def), &registry);
  return CoverageProblems(registry, {CaseOf("copy")}, {});
}

TEST(CaseCoverage, AcceptsACompleteOp) {
  EXPECT_THAT(ProblemsAfter([](OpDef*) {}), IsEmpty());
}

TEST(CaseCoverage, NamesAnOpWithoutCase) {
  OpRegistry registry;
  Add(CompleteDef("copy"), &registry);
  EXPECT_THAT(CoverageProblems(registry, {}, {}), Contains(HasSubstr("copy: has no case")));
  OpCase benchmark = CaseOf("copy");
  benchmark.benchmark_only = true;
  EXPECT_THAT(CoverageProblems(registry, {benchmark}, {}),
              Contains(HasSubstr("copy: has no case")));
  EXPECT_THAT(CoverageProblems(registry, {}, {{"copy", "runs in the executor"}}), IsEmpty());
}

TEST(CaseCoverage, CountsACheckedGradientAsTested) {
  OpRegistry registry;
  Add(WithGradient(CompleteDef("copy"), "copy_grad"), &registry);
  OpDef gradient = CompleteDef("copy_grad");
  gradient.inputs = {{.name = "Out@GRAD", .doc = "gradient"}};
  gradient.outputs = {{.name = "X@GRAD", .doc = "gradient"}};
  Add(std::move(gradient), &registry);
  EXPECT_THAT(CoverageProblems(registry, {CaseOf("copy", {"X"})}, {}), IsEmpty());
  EXPECT_THAT(CoverageProblems(registry, {CaseOf("copy")}, {}),
              Contains(HasSubstr("copy_grad: has no case")));
}

TEST(CaseCoverage, NamesAGradientOpThatIsNotRegistered) {
  OpRegistry registry;
  Add(WithGradient(CompleteDef("copy"), "copy_grad"), &registry);
  EXPECT_THAT(CoverageProblems(registry, {CaseOf("copy", {"X"})}, {}),
              Contains("copy: its gradient op copy_grad is not registered"));
}

TEST(CaseCoverage, NamesAGradientRuleThatNoCaseChecks) {
  OpRegistry registry;
  Add(WithGradient(CompleteDef("copy"), "copy"), &registry);
  EXPECT_THAT(CoverageProblems(registry, {CaseOf("copy")}, {}),
              Contains("copy: has a gradient rule, but no case that lists an input in "
                       "`gradients`"));
  OpCase excused = CaseOf("copy");
  excused.unchecked_gradient = "no derivative";
  EXPECT_THAT(CoverageProblems(registry, {excused}, {}), IsEmpty());
}

TEST(CaseCoverage, NamesAnOpWithoutCpuKernel) {
  OpRegistry registry;
  Add(CompleteDef("copy"), &registry, false);
  EXPECT_THAT(CoverageProblems(registry, {CaseOf("copy")}, {}),
              Contains("copy: has no CPU kernel"));
}

TEST(CaseCoverage, NamesMissingDocumentation) {
  EXPECT_THAT(ProblemsAfter([](OpDef* def) { def->inputs[0].doc = {}; }),
              Contains("copy: slot X has no documentation"));
  EXPECT_THAT(ProblemsAfter([](OpDef* def) { def->attrs[0].doc = {}; }),
              Contains("copy: attribute axis has no documentation"));
}

TEST(CaseCoverage, NamesDefaultsThatDoNotFit) {
  EXPECT_THAT(ProblemsAfter([](OpDef* def) { def->attrs[0].default_value = 1.0f; }),
              Contains(HasSubstr("axis is declared as int, its default is of type float")));
  EXPECT_THAT(ProblemsAfter([](OpDef* def) {
                def->attrs[0].accepts = [](const Attribute&) { return false; };
                def->attrs[0].expected = "another number";
              }),
              Contains(HasSubstr("axis refuses its own default")));
  EXPECT_THAT(ProblemsAfter([](OpDef* def) {
                def->attrs[0].default_value.reset();
                def->attrs[0].accepts = [](const Attribute&) { return true; };
              }),
              Contains(HasSubstr("axis refuses values and doesn't say what it expects")));
}

TEST(CaseCoverage, NamesFactsAboutUnknownSlots) {
  EXPECT_THAT(ProblemsAfter([](OpDef* def) {
                def->in_place = {{"X", "Y"}};
              }),
              Contains(HasSubstr("in_place names X -> Y")));
  EXPECT_THAT(ProblemsAfter([](OpDef* def) {
                def->layout_rule = LayoutRule::kSame;
                def->layout_slots = {"Z"};
              }),
              Contains(HasSubstr("layout_slots names Z")));
  EXPECT_THAT(ProblemsAfter([](OpDef* def) { def->layout_rule = LayoutRule::kSame; }),
              Contains(HasSubstr("layout_slots must be given")));
  EXPECT_THAT(ProblemsAfter([](OpDef* def) { def->kernel_dtype_slot = "Z"; }),
              Contains(HasSubstr("kernel_dtype_slot Z is no slot")));
}

TEST(CaseCoverage, NamesContradictionsAboutCheckedData) {
  EXPECT_THAT(ProblemsAfter([](OpDef* def) {
                def->inputs[0].shape_only = def->inputs[0].checks_data = true;
              }),
              Contains("copy: input X is both shape_only and checks_data"));
  EXPECT_THAT(ProblemsAfter([](OpDef* def) { def->outputs[0].checks_data = true; }),
              Contains(HasSubstr("output Out is shape_only or checks_data")));
  EXPECT_THAT(ProblemsAfter([](OpDef* def) { def->data_checked_by = "copy"; }),
              Contains(HasSubstr("data_checked_by = copy: expected an op")));
  EXPECT_THAT(ProblemsAfter([](OpDef* def) {
                def->inputs[0].checks_data = true;
                def->data_checked_by = "copi";
              }),
              Contains(HasSubstr("data_checked_by = copi: expected an op")));
}

TEST(CaseCoverage, RefusesStaleExceptions) {
  OpRegistry registry;
  Add(CompleteDef("copy"), &registry);
  EXPECT_THAT(CoverageProblems(registry, {CaseOf("copy")}, {{"copy", "reason"}}),
              Contains(HasSubstr("has one")));
  EXPECT_THAT(CoverageProblems(registry, {CaseOf("copy")}, {{"gone", "reason"}}),
              Contains("gone: is listed as without a case, but no op"));
  OpCase excused = CaseOf("copy");
  excused.unchecked_gradient = "no derivative";
  EXPECT_THAT(CoverageProblems(registry, {excused}, {}),
              Contains(HasSubstr("says why its gradient rule is not checked")));
  OpRegistry with_gradient;
  Add(WithGradient(CompleteDef("copy"), "copy"), &with_gradient);
  excused.gradients = {"X"};
  EXPECT_THAT(CoverageProblems(with_gradient, {excused}, {}),
              Contains(HasSubstr("says why its gradient rule is not checked")));
}

TEST(CaseCoverage, NamesCasesThatShareAName) {
  OpRegistry registry;
  Add(CompleteDef("copy"), &registry);
  EXPECT_THAT(CoverageProblems(registry, {CaseOf("copy"), CaseOf("copy")}, {}),
              Contains("copy: has two cases named plain"));
}

TEST(CaseCoverage, NamesCasesOfUnknownOps) {
  const OpRegistry registry;
  EXPECT_THAT(CoverageProblems(registry, {CaseOf("copy")}, {}),
              Contains("copy: case plain is of no known op"));
}

}  // namespace
}  // namespace skiff::harness
