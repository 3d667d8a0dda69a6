#include "framework/op/grad.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/infer_outputs.h"
#include "framework/op/op_context.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Out = the rows Ids of X, along with Mean, a saved output, [1].
OpDef RowsDef() {
  OpDef def;
  def.type = "rows";
  def.doc = "Out = X[Ids].";
  def.inputs = {{.name = "X", .doc = "A matrix.", .selected_rows = true},
                {.name = "Ids", .doc = "Rows.", .checks_data = true},
                {.name = "Scale", .doc = "Factors.", .dispensable = true}};
  def.outputs = {{.name = "Out", .doc = "Rows of X."},
                 {.name = "Mean", .doc = "Their mean.", .dispensable = true, .intermediate = true}};
  def.attrs = {{.name = "axis", .type = AttrType::kInt, .default_value = 1, .doc = "axis"}};
  def.infer = [](OpContext& context) {
    const TensorMeta& x = context.Input("X");
    context.SetOutput("Out", {context.Input("Ids").shape[0], x.shape[1]}, x.dtype);
    context.SetOutput("Mean", {1}, x.dtype);
  };
  return def;
}

class GradientOfTest : public ::testing::Test {
 protected:
  GradientOfTest()
      : gradient_(GradientOf(&forward_, {ForShape("X"), "Ids", "Scale", "Mean", "Out@GRAD"},
                             {"X@GRAD", "Scale@GRAD"})) {}

  const SlotDef& Input(const std::string& slot) { return *gradient_.FindInput(slot); }

  // Infers the outputs for an X of 5 rows and 3 columns, 2 ids and this gradient of Out.
  std::vector<TensorMeta> Outputs(const Shape& out_grad, DType dtype = DType::kFloat32,
                                  const Shape& mean = {1}) {
    Op op(gradient_.type);
    op.SetInput("X", {"x"}).SetInput("Ids", {"ids"}).SetInput("Scale", {"s"});
    op.SetInput("Mean", {"mean"}).SetInput("Out@GRAD", {"out@GRAD"});
    for (const SlotDef& slot : gradient_.outputs) op.SetOutput(slot.name, {"gradient"});
    OpContext context(op, gradient_,
                      {{.shape = {5, 3}},
                       {.shape = {2}, .dtype = DType::kInt64},
                       {.shape = {3}},
                       {.shape = mean},
                       {.shape = out_grad, .dtype = dtype}},
                      std::vector<TensorMeta>(gradient_.outputs.size()));
    InferOutputs(&context);
    return {context.outputs().begin(), context.outputs().end()};
  }

  OpDef forward_ = RowsDef();
  OpDef gradient_;
};

TEST_F(GradientOfTest, HasTheSlotsOfTheForwardOp) {
  EXPECT_EQ(gradient_.type, "rows_grad");
  std::vector<std::string> names;
  for (const SlotDef& slot : gradient_.inputs) names.emplace_back(slot.name);
  EXPECT_THAT(names, ElementsAre("X", "Ids", "Scale", "Mean", "Out@GRAD"));
  EXPECT_EQ(Input("X").doc, "Of rows.");
  EXPECT_TRUE(Input("X").shape_only);
  EXPECT_FALSE(Input("X").selected_rows);
  EXPECT_TRUE(Input("Ids").checks_data);
  EXPECT_TRUE(Input("Scale").dispensable);
  EXPECT_FALSE(Input("Mean").dispensable);
  EXPECT_FALSE(Input("Mean").intermediate);
  EXPECT_EQ(Input("Out@GRAD").doc, "The gradient of Out.");
  EXPECT_EQ(gradient_.FindOutput("Scale@GRAD")->doc, "The gradient of Scale.");
}

TEST_F(GradientOfTest, HasTheAttributesAndFactsThatFollow) {
  ASSERT_EQ(gradient_.attrs.size(), 1U);
  EXPECT_EQ(gradient_.attrs[0].name, "axis");
  EXPECT_EQ(gradient_.kernel_dtype_slot, "Out@GRAD");
  EXPECT_EQ(gradient_.data_checked_by, "rows");
  EXPECT_FALSE(gradient_.no_gradient_reason.empty());
}

TEST_F(GradientOfTest, OneOfSeveralGradientsMayBeLeftOut) {
  EXPECT_TRUE(gradient_.FindOutput("X@GRAD")->dispensable);
  OpDef forward = RowsDef();
  const OpDef only_x = GradientOf(&forward, {"X", "Out@GRAD"}, {"X@GRAD"});
  EXPECT_FALSE(only_x.FindOutput("X@GRAD")->dispensable);
}

TEST_F(GradientOfTest, MayRejectDataThatTheForwardOpTakes) {
  OpDef forward = RowsDef();
  forward.inputs[1].checks_data = false;
  EXPECT_EQ(GradientOf(&forward, {"X", "Ids", "Out@GRAD"}, {"X@GRAD"}).data_checked_by, "");
  const OpDef gradient = GradientOf(&forward, {"X", Checked("Mean"), "Out@GRAD"}, {"X@GRAD"});
  EXPECT_TRUE(gradient.FindInput("Mean")->checks_data);
  EXPECT_EQ(gradient.data_checked_by, "rows");
  EXPECT_FALSE(GradientOf(&forward, {Checked(ForShape("X")), "Out@GRAD"}, {"X@GRAD"})
                   .FindInput("X")
                   ->checks_data);
}

TEST_F(GradientOfTest, NeedsTheOnlyGradientThatItReads) {
  OpDef forward = RowsDef();
  const OpDef both = GradientOf(&forward, {"X", "Out@GRAD", "Mean@GRAD"}, {"X@GRAD"});
  EXPECT_TRUE(both.FindInput("Mean@GRAD")->dispensable);
  const OpDef one = GradientOf(&forward, {"X", "Mean@GRAD"}, {"X@GRAD"});
  EXPECT_FALSE(one.FindInput("Mean@GRAD")->dispensable);
}

TEST_F(GradientOfTest, MayReadWhatIsThere) {
  OpDef forward = RowsDef();
  const OpDef gradient =
      GradientOf(&forward, {Optional(ForShape("X")), Optional("Mean"), "Out@GRAD"}, {"X@GRAD"});
  EXPECT_TRUE(gradient.FindInput("X")->dispensable);
  EXPECT_TRUE(gradient.FindInput("X")->shape_only);
  EXPECT_TRUE(gradient.FindInput("Mean")->dispensable);
  EXPECT_FALSE(gradient.FindInput("Out@GRAD")->dispensable);
}

TEST_F(GradientOfTest, GivesTheForwardOpItsRule) {
  Op op("rows");
  op.SetInput("X", {"x"}).SetInput("Ids", {"ids"}).SetOutput("Out", {"out"});
  op.SetOutput("Mean", {"mean"});
  const GradContext context(op, forward_, [](const std::string& name) { return name == "x"; });
  const std::vector<Op> ops = forward_.grad(context);
  ASSERT_EQ(ops.size(), 1U);
  EXPECT_EQ(ops[0].type, "rows_grad");
  EXPECT_THAT(ops[0].Input("Mean"), ElementsAre("mean"));
  EXPECT_THAT(ops[0].Input("Out@GRAD"), ElementsAre("out@GRAD"));
  EXPECT_THAT(ops[0].Output("X@GRAD"), ElementsAre("x@GRAD"));
}

TEST_F(GradientOfTest, AGradientIsLikeItsInput) {
  const std::vector<TensorMeta> outputs = Outputs({2, 3});
  EXPECT_EQ(outputs[0].shape, Shape({5, 3}));
  EXPECT_EQ(outputs[1].shape, Shape({3}));
}

// It is compared with what the forward op would make of the inputs.
TEST_F(GradientOfTest, RefusesAGradientThatIsNotLikeItsOutput) {
  EXPECT_THAT(InvalidArgumentText([&] {
                Outputs({5, 3});
              }),
              HasSubstr("rows_grad: Out@GRAD is float32 [5, 3], expected float32 [2, 3]"));
  EXPECT_THAT(InvalidArgumentText([&] {
                Outputs({2, 3}, DType::kFloat64);
              }),
              HasSubstr("Out@GRAD is float64 [2, 3], expected float32"));
}

TEST_F(GradientOfTest, RefusesASavedOutputThatIsNotLikeTheOutput) {
  EXPECT_THAT(InvalidArgumentText([&] {
                Outputs({2, 3}, DType::kFloat32, {2});
              }),
              HasSubstr("rows_grad: Mean is float32 [2], expected float32 [1]"));
}

TEST_F(GradientOfTest, RefusesWhatTheForwardOpRefuses) {
  forward_.infer = [](OpContext& context) {
    Throw(ErrorCode::kInvalidArgument, context.op().type, ": no rows");
  };
  gradient_ = GradientOf(&forward_, {"X", "Ids", "Scale", "Mean", "Out@GRAD"}, {"X@GRAD"});
  EXPECT_EQ(InvalidArgumentText([&] { Outputs({2, 3}); }), "rows_grad: no rows");
}

TEST_F(GradientOfTest, OneElementMayHaveAnyRankWhereTheReadSaysSo) {
  forward_.infer = [](OpContext& context) {
    context.SetOutput("Out", {}, DType::kFloat32);
    context.SetOutput("Mean", {1}, DType::kFloat32);
  };
  gradient_ =
      GradientOf(&forward_, {"X", "Ids", "Scale", "Mean", OneOfAnyRank("Out@GRAD")}, {"X@GRAD"});
  EXPECT_EQ(Outputs({1})[0].shape, Shape({5, 3}));
  EXPECT_THAT(InvalidArgumentText([&] { Outputs({2}); }), HasSubstr("Out@GRAD is float32 [2]"));
  gradient_ = GradientOf(&forward_, {"X", "Ids", "Scale", "Mean", "Out@GRAD"}, {"X@GRAD"});
  EXPECT_THAT(InvalidArgumentText([&] { Outputs({1}); }), HasSubstr("Out@GRAD is float32 [1]"));
}

TEST_F(GradientOfTest, HasNoRuleWithoutAllInputs) {
  OpDef forward = RowsDef();
  EXPECT_EQ(GradientOf(&forward, {"X", "Ids", "Out@GRAD"}, {"X@GRAD"}).infer, nullptr);
}

TEST_F(GradientOfTest, RefusesSlotsThatTheForwardOpHasNot) {
  OpDef forward = RowsDef();
  EXPECT_THAT(InvalidArgumentText([&] { GradientOf(&forward, {"Y"}, {"X@GRAD"}); }),
              HasSubstr("op \"rows\": its gradient op can't have the slot \"Y\""));
  EXPECT_THAT(InvalidArgumentText([&] { GradientOf(&forward, {"X"}, {"Out@GRAD"}); }),
              HasSubstr("can't have the slot \"Out@GRAD\""));
}

}  // namespace
}  // namespace skiff
