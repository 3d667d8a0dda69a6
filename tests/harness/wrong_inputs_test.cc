#include "tests/harness/wrong_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/op/grad.h"

namespace skiff::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "pair": Out = X + Y, of one dtype. Its gradient op checks as
// `infer` does.
std::set<std::string> Accepted(ShapeRule infer, const CaseList& cases) {
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
  OpRegistry registry;
  registry.Add(std::move(def));
  registry.Add(std::move(grad));
  const auto factory = []<typename T>(PrepareContext&) {
    return MakeKernel([](const KernelContext&) {});
  };
  registry.AddCpuKernels<float, double>("pair", factory);
  registry.AddCpuKernels<float, double>("pair_grad", factory);
  return AcceptedWrongInputs(registry, cases);
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
  EXPECT_THAT(Accepted(CopyMeta, PairCase()),
              ElementsAre("pair_grad Out@GRAD: other dims", "pair_grad Out@GRAD: other dtype",
                          "pair_grad Out@GRAD: other rank", "pair_grad Y: other dtype"));
  EXPECT_THAT(Accepted(CheckDType, PairCase()),
              ElementsAre("pair_grad Out@GRAD: other dims", "pair_grad Out@GRAD: other rank"));
  EXPECT_THAT(Accepted(CheckRank, PairCase()), ElementsAre("pair_grad Out@GRAD: other dims"));
  EXPECT_THAT(Accepted(CheckAll, PairCase()), IsEmpty());
}

TEST(WrongInputs, AreAskedOfCasesThatCheckGradients) {
  CaseList cases = PairCase();
  cases[0].gradients.clear();
  EXPECT_THAT(Accepted(CopyMeta, cases), IsEmpty());
}

// A gradient op that refuses what the case gives it would refuse everything.
TEST(WrongInputs, NeedAGradientOpThatAcceptsTheRightOnes) {
  const ShapeRule refuse = [](OpContext&) { Throw(ErrorCode::kInvalidArgument, "always"); };
  EXPECT_THROW(Accepted(refuse, PairCase()), Error);
}

}  // namespace
}  // namespace skiff::harness
