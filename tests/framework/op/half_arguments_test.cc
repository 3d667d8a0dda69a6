#include "framework/op/half_arguments.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/infer_outputs.h"
#include "framework/op/registry.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

constexpr DType kBF16 = DType::kBFloat16;
constexpr DType kF32 = DType::kFloat32;

// A norm: Y and Mean of X, with a Scale that keeps float32. Its rule knows no half.
OpDef NormDef() {
  OpDef def;
  def.type = "norm";
  def.doc = "A norm.";
  def.inputs = {{.name = "X"},
                {.name = "Other", .dispensable = true},
                {.name = "Scale", .keeps_float32 = true},
                {.name = "Like", .dispensable = true, .shape_only = true}};
  def.outputs = {{.name = "Y"}, {.name = "Mean", .dispensable = true, .keeps_float32 = true}};
  def.infer = [](OpContext& context) {
    SKIFF_ENFORCE(context.Input("X").dtype == context.Input("Scale").dtype, kInvalidArgument,
                  "X and Scale differ");
    context.SetOutputLike("Y", "X");
    context.SetOutput("Mean", {1}, context.Input("X").dtype);
  };
  def.no_gradient_reason = "a test";
  def.precision = Precision::kFollow;
  return def;
}

Op NormOp() {
  Op op("norm");
  op.SetInput("X", {"x"}).SetInput("Scale", {"s"});
  op.SetOutput("Y", {"y"}).SetOutput("Mean", {"m"});
  return op;
}

TensorMeta Of(DType dtype) { return {.shape = {2, 3}, .dtype = dtype}; }

// The dtypes of the outputs for these inputs.
std::vector<DType> Inferred(const OpDef& def, const Op& op, const std::vector<TensorMeta>& inputs) {
  OpContext context(op, def, inputs, std::vector<TensorMeta>(OutputOrder(def, op).size()));
  InferOutputs(&context);
  std::vector<DType> dtypes;
  for (const TensorMeta& output : context.outputs()) dtypes.push_back(output.dtype);
  return dtypes;
}

TEST(InferHalfOutputs, GivesOutputsTheDTypeOfTheInputsButWhereTheyKeepFloat32) {
  const OpDef def = NormDef();
  using DTypes = std::vector<DType>;
  EXPECT_EQ(Inferred(def, NormOp(), {Of(kBF16), Of(kF32)}), (DTypes{kBF16, kF32}));
  EXPECT_EQ(Inferred(def, NormOp(), {Of(DType::kFloat16), Of(kF32)}),
            (DTypes{DType::kFloat16, kF32}));
  EXPECT_EQ(Inferred(def, NormOp(), {Of(kF32), Of(kF32)}), (DTypes{kF32, kF32}));
}

TEST(InferHalfOutputs, RefusesFloatsThatDontFitTogether) {
  const OpDef def = NormDef();
  Op op = NormOp();
  op.SetInput("Other", {"o"});
  const auto error = [&](DType x, DType other) {
    return InvalidArgumentText([&] { Inferred(def, op, {Of(x), Of(other), Of(kF32)}); });
  };
  EXPECT_EQ(error(kBF16, kF32), "norm: Other is float32, expected bfloat16, as X is");
  EXPECT_EQ(error(kF32, kBF16), "norm: Other is bfloat16, expected float32, as X is");
  EXPECT_EQ(error(kBF16, DType::kFloat16), "norm: Other is float16, expected bfloat16, as X is");
  // Integers don't count.
  for (const DType fits : {kBF16, DType::kInt64}) {
    EXPECT_EQ(Inferred(def, op, {Of(kBF16), Of(fits), Of(kF32)})[0], kBF16);
  }
}

TEST(InferHalfOutputs, AsksNobodyForTheDTypeOfWhatIsOnlyMeasured) {
  const OpDef def = NormDef();
  Op op = NormOp();
  op.SetInput("Like", {"l"});
  EXPECT_EQ(Inferred(def, op, {Of(kF32), Of(kF32), Of(kBF16)})[0], kF32);
  EXPECT_EQ(Inferred(def, op, {Of(kBF16), Of(kF32), Of(kF32)})[0], kBF16);
}

// A dtype that the op names is that of its inputs; no op converts before or after.
TEST(InferHalfOutputs, RefusesOtherDTypesThanThoseThatAnAttributeNames) {
  OpDef def = NormDef();
  def.attrs = {{.name = "out_dtype",
                .type = AttrType::kInt,
                .default_value = Attribute(int32_t{-1}),
                .names_dtype = true}};
  Op op = NormOp();
  const auto inferred = [&](DType x, DType named) {
    op.SetAttr("out_dtype", static_cast<int32_t>(named));
    return Inferred(def, op, {Of(x), Of(kF32)})[0];
  };
  EXPECT_EQ(inferred(kBF16, kBF16), kBF16);
  EXPECT_EQ(inferred(kF32, kF32), kF32);
  EXPECT_EQ(ErrorText(ErrorCode::kUnimplemented, [&] { inferred(kBF16, kF32); }),
            "norm: out_dtype = 5, expected -1 or 22 (bfloat16), the dtype of the inputs; cast "
            "before");
  EXPECT_EQ(ErrorText(ErrorCode::kUnimplemented, [&] { inferred(kF32, kBF16); }),
            "norm: out_dtype = 22, expected -1 or 5 (float32), the dtype of the inputs; cast "
            "before");
}

// Running statistics, say: whoever holds them in half gets them back so.
TEST(InferHalfOutputs, GivesWhatKeepsFloat32TheDTypeOfTheInputWhoseNextValueItIs) {
  OpDef def = NormDef();
  def.inputs.push_back({.name = "Running", .dispensable = true, .keeps_float32 = true});
  def.in_place = {{"Running", "Mean"}};
  Op op = NormOp();
  op.SetInput("Running", {"r"});
  using DTypes = std::vector<DType>;
  for (const DType running : {kF32, kBF16}) {
    EXPECT_EQ(Inferred(def, op, {Of(kBF16), Of(kF32), Of(running)}), (DTypes{kBF16, running}));
  }
  EXPECT_EQ(Inferred(def, NormOp(), {Of(kBF16), Of(kF32)}), (DTypes{kBF16, kF32}));
}

// The gradient of an input that keeps float32 is float32, that of the others half.
TEST(InferHalfOutputs, GivesGradientsTheDTypesOfTheirInputs) {
  OpDef forward = NormDef();
  forward.no_gradient_reason = {};
  OpDef def = GradientOf(&forward, {"X", "Scale", "Y@GRAD"}, {"X@GRAD", "Scale@GRAD"});
  EXPECT_EQ(def.precision, Precision::kFollow);
  EXPECT_TRUE(def.FindInput("Scale")->keeps_float32);
  EXPECT_TRUE(def.FindOutput("Scale@GRAD")->keeps_float32);
  EXPECT_FALSE(def.FindOutput("X@GRAD")->keeps_float32);
  def.infer = [](OpContext& context) {
    context.SetOutputLike("X@GRAD", "X");
    context.SetOutputLike("Scale@GRAD", "Scale");
  };
  Op op("norm_grad");
  op.SetInput("X", {"x"}).SetInput("Scale", {"s"}).SetInput("Y@GRAD", {"dy"});
  op.SetOutput("X@GRAD", {"dx"}).SetOutput("Scale@GRAD", {"ds"});
  const std::vector<DType> dtypes = Inferred(def, op, {Of(kBF16), Of(kF32), Of(kBF16)});
  EXPECT_EQ(dtypes, (std::vector<DType>{kBF16, kF32}));
}

TEST(HalfOfArguments, IsNothingForOpsWhoseOwnRulesKnowHalf) {
  OpDef def = NormDef();
  const Op op = NormOp();
  const auto half = [&](DType x) {
    return HalfOfArguments(OpContext(op, def, {Of(x), Of(kF32)}, {Of(x), Of(kF32)}));
  };
  EXPECT_EQ(half(kBF16), kBF16);
  EXPECT_EQ(half(kF32), std::nullopt);
  def.precision = Precision::kNone;
  EXPECT_EQ(half(kBF16), std::nullopt);
  def.precision = std::nullopt;
  EXPECT_EQ(half(kBF16), kBF16);
}

TEST(HalfArguments, FindKernelsForFloat32ThatRunOnWhatIsWidened) {
  OpRegistry registry;
  registry.Add(NormDef());
  registry.AddCpuKernels<float>(
      "norm", []<typename>(PrepareContext&) { return MakeKernel([](const KernelContext&) {}); });
  const Op op = NormOp();
  const OpContext half(op, registry.Get("norm"), {Of(kBF16), Of(kF32)}, {Of(kBF16), Of(kF32)});
  EXPECT_EQ(OpRegistry::KernelDType(half), kBF16);
  EXPECT_EQ(registry.FindKernel(half), nullptr);
  EXPECT_TRUE(registry.CanRun(half));
  EXPECT_NE(registry.FindKernel(Widened(half)), nullptr);
  EXPECT_EQ(Widened(half).Input("X").dtype, kF32);
  EXPECT_EQ(Widened(half).Output("Y").dtype, kF32);
}

// Whoever holds a scale in half has it widened, as the kernel reads float32 there.
TEST(HalfArguments, FindKernelsForHalfOnlyWhereWhatKeepsFloat32IsFloat32) {
  OpRegistry registry;
  registry.Add(NormDef());
  for (const DType dtype : {kF32, kBF16}) {
    registry.AddKernel("norm", {.dtype = dtype});
  }
  const Op op = NormOp();
  const auto finds = [&](DType x, DType scale, DType mean) {
    const OpContext context(op, registry.Get("norm"), {Of(x), Of(scale)}, {Of(x), Of(mean)});
    EXPECT_TRUE(registry.CanRun(context));
    return registry.FindKernel(context) != nullptr;
  };
  EXPECT_TRUE(finds(kBF16, kF32, kF32));
  EXPECT_FALSE(finds(kBF16, kBF16, kF32));
  EXPECT_FALSE(finds(kBF16, kF32, kBF16));
  EXPECT_FALSE(finds(kF32, kBF16, kF32));
}

}  // namespace
}  // namespace skiff
