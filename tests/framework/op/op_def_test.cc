#include "framework/op/op_def.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/declared_types.h"
#include "framework/op/grad.h"
#include "framework/op/grad_name.h"
#include "framework/op/op_context.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

OpDef SoftmaxDef() {
  OpDef def;
  def.type = "softmax";
  def.doc = "Out = softmax(X).";
  def.inputs = {{.name = "X", .doc = "logits"},
                {.name = "Mask", .doc = "mask", .dispensable = true},
                {.name = "More", .doc = "summands", .duplicable = true, .dispensable = true}};
  def.outputs = {{.name = "Out", .doc = "probabilities"},
                 {.name = "Parts", .doc = "parts", .duplicable = true, .dispensable = true}};
  def.attrs = {
      {.name = "axis", .type = AttrType::kInt, .default_value = -1, .doc = "axis"},
      {.name = "scale",
       .type = AttrType::kFloat,
       .default_value = 1.0f,
       .doc = "scale",
       .accepts = [](const Attribute& value) { return std::get<float>(value) > 0; },
       .expected = "a positive number",
       .refusal = ErrorCode::kOutOfRange},
      {.name = "mode", .type = AttrType::kString, .doc = "mode"},
      {.name = "dims",
       .type = AttrType::kInts,
       .default_value = std::vector<int32_t>{1, 2},
       .doc = "dims"},
  };
  def.infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
  def.grad = GradOp("softmax_grad", {"X", "Mask", "Out", "Out@GRAD"}, {"X@GRAD", "More@GRAD"});
  return def;
}

Op SoftmaxOp() {
  Op op("softmax");
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"}).SetAttr("mode", std::string("fast"));
  return op;
}

std::string CheckMessage(const Op& op) {
  try {
    CheckOp(SoftmaxDef(), op);
  } catch (const Error& error) {
    const bool is_of_op =
        error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kOutOfRange;
    EXPECT_TRUE(is_of_op) << ErrorCodeName(error.code());
    return error.what();
  }
  return {};
}

TEST(CheckOp, AcceptsACompleteOp) { EXPECT_THAT(CheckMessage(SoftmaxOp()), IsEmpty()); }

TEST(CheckOp, NamesAMissingInputSlot) {
  Op op = SoftmaxOp();
  op.SetInput("X", {});
  EXPECT_EQ(CheckMessage(op), "softmax: input slot \"X\" is missing");
  // The name of no variable keeps a place free where a slot may be empty.
  op.SetInput("X", {"@EMPTY@"}).SetInput("Mask", {"@EMPTY@"});
  EXPECT_EQ(CheckMessage(op), "softmax: input slot \"X\" holds @EMPTY@, expected a variable");
  op.SetInput("X", {"x"});
  EXPECT_THAT(CheckMessage(op), IsEmpty());
}

TEST(CheckOp, NamesAnUnknownSlot) {
  Op input = SoftmaxOp();
  input.SetInput("Y", {"y"});
  EXPECT_THAT(CheckMessage(input), HasSubstr("softmax: there is no input slot \"Y\""));
  Op output = SoftmaxOp();
  output.SetOutput("Y", {"y"});
  EXPECT_THAT(CheckMessage(output), HasSubstr("softmax: there is no output slot \"Y\""));
  // Fluid writes empty slots of other versions.
  Op empty = SoftmaxOp();
  empty.SetInput("Y", {});
  EXPECT_THAT(CheckMessage(empty), IsEmpty());
}

TEST(CheckOp, RefusesSeveralVariablesInASingleSlot) {
  Op op = SoftmaxOp();
  op.SetInput("X", {"x", "y"});
  EXPECT_THAT(CheckMessage(op), HasSubstr("softmax: input slot \"X\" takes one variable, found 2"));
  Op duplicable = SoftmaxOp();
  duplicable.SetInput("More", {"x", "y"});
  EXPECT_THAT(CheckMessage(duplicable), IsEmpty());
}

TEST(CheckOp, RefusesAnOpWithoutAnOutputThatItNeeds) {
  Op op = SoftmaxOp();
  op.SetOutput("Out", {});
  EXPECT_THAT(CheckMessage(op), HasSubstr("softmax: output slot \"Out\" is missing"));
  op.SetOutput("Parts", {"a", kEmptyVarName});
  EXPECT_THAT(CheckMessage(op), HasSubstr("softmax: output slot \"Out\" is missing"));
  op.SetOutput("Out", {kEmptyVarName});
  EXPECT_THAT(CheckMessage(op), HasSubstr("softmax: output slot \"Out\" holds @EMPTY@"));
  op.SetOutput("Out", {"out"});
  EXPECT_THAT(CheckMessage(op), IsEmpty());
}

TEST(CheckOp, RefusesAnOpWithoutAnyOutput) {
  OpDef def = SoftmaxDef();
  for (SlotDef& slot : def.outputs) slot.dispensable = true;
  Op op("softmax");
  op.SetInput("X", {"x"}).SetAttr("mode", std::string("fast"));
  EXPECT_THROW(CheckOp(def, op), Error);
  EXPECT_NO_THROW(CheckOp(def, op.SetOutput("Parts", {"part"})));
}

TEST(CheckOp, NamesAnAttributeOfTheWrongType) {
  Op op = SoftmaxOp();
  op.SetAttr("axis", 1.0f);
  EXPECT_EQ(CheckMessage(op),
            "softmax: attribute \"axis\" is of type float, expected int; found 1.0");
  op.SetAttr("axis", std::string("last"));
  EXPECT_EQ(CheckMessage(op), "softmax: attribute \"axis\" is of type string, expected int");
}

// The attribute "a" of an op whose definition declares it as `type`, after the conversion.
Attribute Taken(AttrType type, const Attribute& value) {
  OpDef def;
  def.attrs = {{.name = "a", .type = type, .doc = "a"}};
  Op op("tiny");
  op.SetAttr("a", value);
  const std::vector<std::string> messages = TakeDeclaredTypes(def, &op);
  const bool is_changed = !SameAttribute(op.attrs.at("a"), value);
  EXPECT_EQ(messages.size(), is_changed ? 1U : 0U);
  return op.attrs.at("a");
}

TEST(TakeDeclaredTypes, ConvertsNumbersThatFit) {
  const auto expect = [](AttrType type, const Attribute& value, const Attribute& taken) {
    EXPECT_TRUE(SameAttribute(Taken(type, value), taken))
        << AttrTypeName(TypeOf(value)) << " as " << AttrTypeName(type);
  };
  expect(AttrType::kBool, 0, false);
  expect(AttrType::kBool, int64_t{1}, true);
  expect(AttrType::kBool, 1.0f, true);
  expect(AttrType::kInt, true, 1);
  expect(AttrType::kInt, -3.0f, -3);
  expect(AttrType::kLong, -0x1p63, std::numeric_limits<int64_t>::min());
  expect(AttrType::kFloat, 1, 1.0f);
  expect(AttrType::kFloat, int64_t{1} << 62, 0x1p62f);
  expect(AttrType::kFloat, 0.1, 0.1f);
  expect(AttrType::kFloat, std::numeric_limits<double>::infinity(),
         std::numeric_limits<float>::infinity());
  expect(AttrType::kDouble, 0.1f, static_cast<double>(0.1f));
  expect(AttrType::kFloats, std::vector<int32_t>{1, -2}, std::vector<float>{1, -2});
  expect(AttrType::kLongs, std::vector<double>{3, 4}, std::vector<int64_t>{3, 4});
  expect(AttrType::kBools, std::vector<int32_t>{0, 1}, std::vector<bool>{false, true});
  // Python writes an empty list as one of ints.
  expect(AttrType::kStrings, std::vector<int32_t>{}, std::vector<std::string>{});
}

TEST(TakeDeclaredTypes, LeavesWhatDoesNotFit) {
  const auto expect_left = [](AttrType type, const Attribute& value) {
    EXPECT_TRUE(SameAttribute(Taken(type, value), value))
        << AttrTypeName(TypeOf(value)) << " as " << AttrTypeName(type);
  };
  expect_left(AttrType::kBool, 2);
  expect_left(AttrType::kBool, 0.5f);
  expect_left(AttrType::kInt, 0.5f);
  expect_left(AttrType::kInt, 0x1p31);
  expect_left(AttrType::kLong, 0x1p63);
  expect_left(AttrType::kInt, std::numeric_limits<float>::quiet_NaN());
  expect_left(AttrType::kFloat, (1 << 24) + 1);
  expect_left(AttrType::kFloat, std::numeric_limits<int64_t>::max());
  expect_left(AttrType::kFloat, 1e39);
  expect_left(AttrType::kFloats, std::vector<int32_t>{1, (1 << 24) + 1});
  expect_left(AttrType::kString, 1);
  expect_left(AttrType::kInts, 1);
  expect_left(AttrType::kInt, std::vector<int32_t>{1});
  expect_left(AttrType::kStrings, std::vector<int32_t>{1});
  // Definitions accept either, and for some ops, an end beyond all ends is legal.
  expect_left(AttrType::kInt, int64_t{1});
  expect_left(AttrType::kInts, std::vector<int64_t>{1, int64_t{1} << 40});
}

TEST(CheckOp, AcceptsLongWhereIntIsDeclared) {
  Op op = SoftmaxOp();
  op.SetAttr("axis", int64_t{1}).SetAttr("dims", std::vector<int64_t>{3});
  EXPECT_THAT(CheckMessage(op), IsEmpty());
}

TEST(CheckOp, NamesAnAttributeOutOfRange) {
  Op op = SoftmaxOp();
  op.SetAttr("scale", -1.0f);
  EXPECT_THAT(CheckMessage(op), HasSubstr("softmax: scale = -1.0, expected a positive number"));
}

TEST(CheckOp, NamesAMissingAttributeWithoutDefault) {
  Op op = SoftmaxOp();
  op.attrs.clear();
  EXPECT_THAT(CheckMessage(op),
              HasSubstr("softmax: attribute \"mode\" is not set and has no default"));
}

TEST(CheckOp, AcceptsAnAttributeThatAnInputGives) {
  OpDef def = SoftmaxDef();
  def.inputs.push_back(AttributeSlot("Mode", "mode"));
  Op op = SoftmaxOp();
  op.attrs.clear();
  op.SetInput("Mode", {"@EMPTY@"});
  EXPECT_THAT(InvalidArgumentText([&] { CheckOp(def, op); }), HasSubstr("\"mode\" is not set"));
  op.SetInput("Mode", {"m"});
  CheckOp(def, op);
}

TEST(CheckOp, RefusesAStringThatIsNoneOfTheChoices) {
  OpDef def = SoftmaxDef();
  def.attrs[2] = ChoiceAttr("mode", "fast", {"fast", "exact", ""}, "mode");
  EXPECT_EQ(def.attrs[2].default_value, Attribute(std::string("fast")));
  for (const char* mode : {"fast", "exact", ""}) {
    EXPECT_NO_THROW(CheckOp(def, SoftmaxOp().SetAttr("mode", std::string(mode)))) << mode;
  }
  EXPECT_EQ(
      InvalidArgumentText([&] { CheckOp(def, SoftmaxOp().SetAttr("mode", std::string("fas"))); }),
      "softmax: mode = \"fas\", expected \"fast\", \"exact\" or \"\"");
}

TEST(CheckOp, NarrowsNoLongThatAnIntCannotHold) {
  OpDef def = SoftmaxDef();
  def.attrs[0].accepts = [](const Attribute&) { return true; };
  def.attrs[3].accepts = [](const Attribute&) { return true; };
  const auto message = [&def](const Op& op) -> std::string {
    try {
      CheckOp(def, op);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message(SoftmaxOp().SetAttr("axis", int64_t{1} << 31)),
            "attribute \"axis\" = 2147483648 is outside 32 bits");
  EXPECT_EQ(message(SoftmaxOp().SetAttr("dims", std::vector<int64_t>{1, -(int64_t{1} << 40)})),
            "attribute \"dims\" = -1099511627776 is outside 32 bits");
  // Of lists of which any is accepted the op sees to the values.
  def.attrs[0].accepts = nullptr;
  def.attrs[3].accepts = nullptr;
  EXPECT_EQ(message(SoftmaxOp().SetAttr("axis", (int64_t{1} << 32) + 1)),
            "attribute \"axis\" = 4294967297 is outside 32 bits");
  EXPECT_EQ(message(SoftmaxOp().SetAttr("dims", std::vector<int64_t>{int64_t{1} << 40})),
            "no error");
}

TEST(CheckOp, IgnoresAttributesOfOtherVersions) {
  Op op = SoftmaxOp();
  op.SetAttr("use_cudnn", true);
  EXPECT_THAT(CheckMessage(op), IsEmpty());
}

TEST(CheckOp, RefusesAnOpThatAnInferencePassFusedOthersInto) {
  const std::vector<int32_t> axes = {1};
  // Those that do so, and those that say there is nothing of the kind.
  const AttributeMap fused = {{"fuse_activation", std::string("relu")},
                              {"fuse_residual_connection", true},
                              {"fused_unsqueeze2_axes", axes},
                              {"fused_reshape_X", std::vector<int64_t>{0, -1}},
                              {"use_quantizer", true},
                              {"Scale_in", 0.5f},
                              {"Scale_weights", std::vector<float>{1.0f, 2.0f}}};
  const AttributeMap plain = {{"fuse_activation", std::string()},
                              {"fuse_residual_connection", false},
                              {"fused_unsqueeze2_axes", std::vector<int32_t>{}},
                              {"fused_reshape_X", std::vector<int64_t>{}},
                              {"use_quantizer", false},
                              {"Scale_in", 1.0f},
                              {"Scale_weights", std::vector<float>{1.0f}}};
  for (const auto& [name, value] : fused) {
    try {
      CheckOp(SoftmaxDef(), SoftmaxOp().SetAttr(name, value));
      ADD_FAILURE() << name << " passes";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
      EXPECT_THAT(error.what(), HasSubstr(StrCat("softmax: attribute \"", name, "\" = ")));
    }
    EXPECT_THAT(CheckMessage(SoftmaxOp().SetAttr(name, plain.at(name))), IsEmpty());
  }
  // An op of ours may have one of these names for itself.
  OpDef def = SoftmaxDef();
  def.attrs.push_back({.name = "Scale_in", .type = AttrType::kFloat, .doc = "a factor"});
  EXPECT_NO_THROW(CheckOp(def, SoftmaxOp().SetAttr("Scale_in", 0.5f)));
}

TEST(DescribeOp, NamesBlockPositionAndSite) {
  Op op = SoftmaxOp();
  op.site = {"models/ernie/ernie.cc", 88};
  EXPECT_EQ(DescribeOp(op, 0, 17), "softmax (block 0, op #17, models/ernie/ernie.cc:88)");
  op.SetAttr("op_namescope", std::string("fc_0/"));
  EXPECT_EQ(DescribeOp(op, 2, 17), "softmax (block 2, op #17 \"fc_0/\", models/ernie/ernie.cc:88)");
  op.site = {};
  op.SetAttr("op_namescope", 3);
  EXPECT_EQ(DescribeOp(op, 0, 0), "softmax (block 0, op #0)");
}

class OpContextTest : public ::testing::Test {
 protected:
  // x and z are given, with @EMPTY@ between them.
  OpContextTest() {
    op_.SetInput("More", {"y", "@EMPTY@", "z"});
    const TensorMeta x{.shape = {2, 3}, .dtype = DType::kFloat64, .lod_level = 1};
    const TensorMeta y{.shape = {5}, .dtype = DType::kInt64};
    context_ = std::make_unique<OpContext>(op_, def_, std::vector<TensorMeta>{x, y, {}, y},
                                           std::vector<TensorMeta>(1));
  }

  const OpDef def_ = SoftmaxDef();
  Op op_ = SoftmaxOp();
  std::unique_ptr<OpContext> context_;
};

TEST_F(OpContextTest, FillsInDefaults) {
  EXPECT_EQ(context_->Attr<int32_t>("axis"), -1);
  EXPECT_EQ(context_->Attr<float>("scale"), 1.0f);
  EXPECT_EQ(context_->Attr<std::string>("mode"), "fast");
  EXPECT_THAT(context_->IntsAttr("dims"), ElementsAre(1, 2));
  op_.SetAttr("axis", 1);
  EXPECT_EQ(context_->Attr<int32_t>("axis"), 1);
}

TEST_F(OpContextTest, ReadsIntegersOfEitherWidth) {
  op_.SetAttr("axis", int64_t{5}).SetAttr("dims", std::vector<int64_t>{7});
  EXPECT_EQ(context_->IntAttr("axis"), 5);
  EXPECT_THAT(context_->IntsAttr("dims"), ElementsAre(7));
  op_.SetAttr("axis", 6);
  EXPECT_EQ(context_->IntAttr("axis"), 6);
}

TEST_F(OpContextTest, RefusesUnknownAndMistypedAttributes) {
  EXPECT_EQ(InvalidArgumentText([&] { context_->Attr<int32_t>("depth"); }),
            "softmax: attribute \"depth\" is not set and has no default");
  EXPECT_EQ(InvalidArgumentText([&] { context_->Attr<float>("axis"); }),
            "softmax: attribute \"axis\" is of type int, expected float");
  EXPECT_EQ(InvalidArgumentText([&] { context_->IntAttr("scale"); }),
            "softmax: attribute \"scale\" is of type float, expected long");
  EXPECT_EQ(InvalidArgumentText([&] { context_->IntsAttr("mode"); }),
            "softmax: attribute \"mode\" is of type string, expected longs");
  EXPECT_EQ(InvalidArgumentText([&] { context_->Input("Mask"); }),
            "softmax: input \"Mask\" is missing");
  EXPECT_EQ(InvalidArgumentText([&] { context_->Output("Parts"); }),
            "softmax: output \"Parts\" is missing");
  EXPECT_EQ(InvalidArgumentText([&] { context_->InputIndex("Y"); }),
            "softmax: the definition has no slot \"Y\"");
  EXPECT_FALSE(context_->HasAttr("depth"));
  EXPECT_TRUE(context_->HasAttr("axis"));
}

TEST_F(OpContextTest, CountsArgumentsInTheOrderOfTheDefinition) {
  EXPECT_EQ(context_->InputIndex("X"), 0);
  EXPECT_EQ(context_->InputIndex("Mask"), -1);
  EXPECT_EQ(context_->InputIndex("More", 0), 1);
  EXPECT_EQ(context_->InputIndex("More", 1), -1);
  EXPECT_EQ(context_->InputIndex("More", 2), 3);
  EXPECT_EQ(context_->InputIndex("More", 3), -1);
  EXPECT_EQ(context_->InputCount("More"), 3U);
  EXPECT_EQ(context_->OutputIndex("Out"), 0);
  EXPECT_EQ(context_->OutputIndex("Parts"), -1);
  EXPECT_THAT(InputOrder(def_, op_), ElementsAre("x", "y", "@EMPTY@", "z"));
}

TEST_F(OpContextTest, SetsOutputsThatArePresent) {
  context_->SetOutputLike("Out", "X");
  EXPECT_EQ(context_->Output("Out").shape, (Shape{2, 3}));
  EXPECT_EQ(context_->Output("Out").dtype, DType::kFloat64);
  EXPECT_EQ(context_->Output("Out").lod_level, 1);
  context_->SetOutput("Parts", {9}, DType::kInt32);  // absent: nothing happens
  EXPECT_EQ(context_->outputs().size(), 1U);
}

TEST(MergeDims, TakesTheKnownOneAndRefusesAContradiction) {
  EXPECT_EQ(MergeDims(-1, 4, "rows"), 4);
  EXPECT_EQ(MergeDims(4, -1, "rows"), 4);
  EXPECT_EQ(MergeDims(4, 4, "rows"), 4);
  EXPECT_EQ(MergeDims(-1, -1, "rows"), -1);
  EXPECT_EQ(InvalidArgumentText([] { MergeDims(4, 5, "rows"); }), "rows: 4 and 5 differ");
}

TEST(GradOp, NamesForwardVariablesAndGradients) {
  const OpDef def = SoftmaxDef();
  Op forward = SoftmaxOp();
  forward.SetInput("More", {"a", "b"});
  const GradContext context(forward, def, [](const std::string& name) { return name != "a"; });
  const std::vector<Op> ops = def.grad(context);
  ASSERT_EQ(ops.size(), 1U);
  EXPECT_EQ(ops[0].type, "softmax_grad");
  EXPECT_THAT(ops[0].Input("X"), ElementsAre("x"));
  EXPECT_THAT(ops[0].Input("Mask"), IsEmpty());
  EXPECT_THAT(ops[0].Input("Out"), ElementsAre("out"));
  EXPECT_THAT(ops[0].Input("Out@GRAD"), ElementsAre("out@GRAD"));
  EXPECT_THAT(ops[0].Output("X@GRAD"), ElementsAre("x@GRAD"));
  EXPECT_THAT(ops[0].Output("More@GRAD"), ElementsAre("@EMPTY@", "b@GRAD"));
  EXPECT_EQ(ops[0].Attr<std::string>("mode"), "fast");
}

TEST(GradContext, NamesNoGradientThatIsNotWanted) {
  const OpDef def = SoftmaxDef();
  const Op forward = SoftmaxOp();
  const GradContext context(forward, def, [](const std::string&) { return false; });
  EXPECT_THAT(context.InputGrad("X"), ElementsAre("@EMPTY@"));
}

TEST(ForwardName, IsWhatPrecedesTheLastSuffix) {
  EXPECT_EQ(ForwardName(GradName("x")), "x");
  EXPECT_EQ(ForwardName("x@GRAD_2"), "x");
  EXPECT_EQ(ForwardName("x@GRAD@RENAME@0"), "x");
  EXPECT_EQ(ForwardName(GradName("x@GRAD")), "x@GRAD");
  EXPECT_EQ(ForwardName("x@GRAD@GRAD@RENAME@1"), "x@GRAD");
  EXPECT_EQ(ForwardName("x"), "");
}

}  // namespace
}  // namespace skiff
