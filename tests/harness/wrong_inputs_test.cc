#include "tests/harness/wrong_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/grad.h"

namespace skiff::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "pair": Out = X + Y, of one dtype. Its gradient op checks as
// `infer` does.
void RegisterPair(OpRegistry& registry, ShapeRule infer) {
  OpDef def;
  def.type = "pair";
  def.doc = "Out = X + Y.";
  def.inputs = {{.name = "X"}, {.name = "Y"}};
  def.outputs = {{.name = "Out"}};
  def.infer = [](OpContext& context) {
    SKIFF_ENFORCE(context.Input("X").dtype == context.Input("Y").dtype, kInvalidArgument, "pair");
    context.SetOutputLike("Out", "X");
  };
  def.grad = GradOp("pair_grad", {"Y", "Out@GRAD"}, {"X@GRAD"});
  OpDef grad;
  grad.type = "pair_grad";
  grad.doc = "X@GRAD = Out@GRAD.";
  grad.inputs = {{.name = "Y"}, {.name = "Out@GRAD"}};
  grad.outputs = {{.name = "X@GRAD"}};
  grad.infer = std::move(infer);
  grad.no_gradient_reason = "none";
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  const auto factory = []<typename T>(PrepareContext&) {
    return MakeKernel([](const KernelContext&) {});
  };
  registry.AddCpuKernels<float, double>("pair", factory);
  registry.AddCpuKernels<float, double>("pair_grad", factory);
}

std::vector<std::string> Problems(ShapeRule infer, const CaseList& cases) {
  OpRegistry registry;
  RegisterPair(registry, std::move(infer));
  return WrongInputProblems(registry, cases);
}

CaseList PairCase() {
  OpCase op_case;
  op_case.name = "any";
  op_case.type = "pair";
  op_case.inputs = {{"X", {Uniform({2, 3}, 1)}}, {"Y", {Uniform({2, 3}, 2)}}};
  op_case.outputs = {{"Out", 1}};
  op_case.gradients = {"X"};
  return {op_case};
}

void CopyMeta(OpContext& context) { context.SetOutputLike("X@GRAD", "Out@GRAD"); }

void CheckDType(OpContext& context) {
  SKIFF_ENFORCE(context.Input("Y").dtype == context.Input("Out@GRAD").dtype, kInvalidArgument, "");
  CopyMeta(context);
}

void CheckRank(OpContext& context) {
  CheckDType(context);
  MergeDims(context.Input("Out@GRAD").shape.rank(), 2, "rank");
}

void CheckAll(OpContext& context) {
  CheckDType(context);
  SKIFF_ENFORCE(context.Input("Out@GRAD").shape == (Shape{2, 3}), kInvalidArgument, "");
}

TEST(WrongInputs, AreFoundOneByOne) {
  // Y of other dims leads to the same Out; of another dtype to none.
  EXPECT_THAT(Problems(CopyMeta, PairCase()),
              ElementsAre("pair: its gradient op accepts Out@GRAD of other dims",
                          "pair: its gradient op accepts Out@GRAD of other dtype",
                          "pair: its gradient op accepts Out@GRAD of other rank",
                          "pair: its gradient op accepts Y of other dtype"));
  EXPECT_THAT(Problems(CheckDType, PairCase()),
              ElementsAre("pair: its gradient op accepts Out@GRAD of other dims",
                          "pair: its gradient op accepts Out@GRAD of other rank"));
  EXPECT_THAT(Problems(CheckRank, PairCase()),
              ElementsAre("pair: its gradient op accepts Out@GRAD of other dims"));
  EXPECT_THAT(Problems(CheckAll, PairCase()), IsEmpty());
}

TEST(WrongInputs, AreAskedOfCasesThatCheckGradients) {
  CaseList cases = PairCase();
  cases[0].gradients.clear();
  EXPECT_THAT(Problems(CopyMeta, cases), IsEmpty());
}

TEST(WrongInputs, MayBeAcceptedForAReason) {
  CaseList cases = PairCase();
  cases.push_back(cases[0]);
  // It is enough that one case of the op lists it.
  cases[1].accepted_wrong_inputs = {{"Out@GRAD", "other dims", "nothing tells them"}};
  EXPECT_THAT(Problems(CheckRank, cases), IsEmpty());
  EXPECT_THAT(
      Problems(CheckAll, cases),
      ElementsAre("pair: its gradient op refuses Out@GRAD of other dims, which a case lists "
                  "as accepted"));
  cases[1].accepted_wrong_inputs[0].reason.clear();
  EXPECT_THAT(Problems(CheckRank, cases),
              ElementsAre("pair/any: lists Out@GRAD of other dims as accepted, but without a "
                          "reason"));
  // Of another op it excuses nothing.
  cases[1].type = "sum";
  cases[1].gradients.clear();
  cases[1].accepted_wrong_inputs[0].reason = "nothing tells them";
  EXPECT_THAT(Problems(CheckRank, cases),
              ElementsAre("pair: its gradient op accepts Out@GRAD of other dims",
                          "sum: its gradient op refuses Out@GRAD of other dims, which a case lists "
                          "as accepted"));
}

TEST(WrongInputs, WantACaseForEachGradientThatTheRuleAloneCanCheck) {
  OpRegistry registry;
  RegisterPair(registry, CheckAll);
  EXPECT_THAT(UncheckedGradients(registry, PairCase()), IsEmpty());
  EXPECT_THAT(UncheckedGradients(registry, {}), ElementsAre("pair_grad: no case checks Out@GRAD"));
}

// A gradient op that refuses what the case gives it would refuse everything.
TEST(WrongInputs, NeedAGradientOpThatAcceptsTheRightOnes) {
  const ShapeRule refuse = [](OpContext&) { Throw(ErrorCode::kInvalidArgument, "always"); };
  EXPECT_THROW(Problems(refuse, PairCase()), Error);
}

}  // namespace
}  // namespace skiff::harness
