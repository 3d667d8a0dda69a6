#include "framework/op/op_context.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/infer_outputs.h"

namespace skiff {
namespace {

constexpr int64_t kHuge = int64_t{1} << 61;

// What InferOutputs says of an op whose output is `output`; empty: nothing.
std::string InferenceError(const TensorMeta& input, const TensorMeta& output) {
  OpDef def;
  def.type = "shaped";
  def.inputs = {{.name = "X", .selected_rows = true}};
  def.outputs = {{.name = "Out", .selected_rows = true}};
  def.infer = [output](OpContext& context) { context.mutable_outputs()[0] = output; };
  Op op("shaped");
  op.SetInput("X", {"x"}).SetOutput("Out", {"y"});
  OpContext context(op, def, {input}, {TensorMeta{}});
  try {
    InferOutputs(&context);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
    return error.what();
  }
}

TEST(InferOutputs, RefusesShapesThatNoTensorHas) {
  const TensorMeta small{.shape = {2, 3}};
  const TensorMeta huge{.shape = {kHuge, 0}};
  EXPECT_EQ(InferenceError(small, small), "");
  EXPECT_EQ(InferenceError(small, huge),
            "shaped: output \"Out\", variable \"y\": shape [2305843009213693952, 0] has more than "
            "281474976710656 elements, a dim of 0 counted as 1");
  EXPECT_EQ(InferenceError(huge, small),
            "shaped: input \"X\", variable \"x\": shape [2305843009213693952, 0] has more than "
            "281474976710656 elements, a dim of 0 counted as 1");
  EXPECT_NE(InferenceError({.shape = {-1, kHuge}}, small), "");
}

TEST(InferOutputs, RefusesSelectedRowsOfAHeightThatNoTensorHas) {
  const TensorMeta small{.shape = {2, 3}};
  const auto rows = [](int64_t height) {
    return TensorMeta{.shape = {2, 3}, .layout = Layout::SelectedRows(height)};
  };
  EXPECT_EQ(InferenceError(small, rows(100)), "");
  EXPECT_EQ(InferenceError(small, rows(-1)), "");
  EXPECT_NE(InferenceError(small, rows(kHuge)), "");
}

// What InferOutputs says of an op that reads `gradient` as the gradient of `out`; empty: nothing.
std::string GradientError(const TensorMeta& out, const std::vector<TensorMeta>& gradients) {
  OpDef def;
  def.type = "shaped_grad";
  def.inputs = {{.name = "Out", .selected_rows = true},
                {.name = "Out@GRAD", .duplicable = true, .selected_rows = true}};
  def.outputs = {{.name = "X@GRAD"}};
  def.infer = [](OpContext& context) { context.SetOutput("X@GRAD", {1}, DType::kFloat32); };
  Op op("shaped_grad");
  op.SetInput("Out", {"y"}).SetOutput("X@GRAD", {"x@GRAD"});
  op.SetInput("Out@GRAD", std::vector<std::string>(gradients.size(), "y@GRAD"));
  std::vector<TensorMeta> inputs = {out};
  inputs.insert(inputs.end(), gradients.begin(), gradients.end());
  OpContext context(op, def, inputs, {TensorMeta{}});
  try {
    InferOutputs(&context);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
}

// Kernels copy one to the other, and files may name any variable as a gradient.
TEST(InferOutputs, RefusesAGradientThatIsNotLikeItsVariable) {
  const TensorMeta out{.shape = {2, 3}};
  EXPECT_EQ(GradientError(out, {out}), "");
  EXPECT_EQ(GradientError(out, {{.shape = {-1, 3}}}), "");
  EXPECT_EQ(GradientError(out, {{.shape = {4, 3}}}),
            "shaped_grad: Out@GRAD is float32 [4, 3], expected float32 [2, 3], as Out is");
  EXPECT_NE(GradientError(out, {{.shape = {2, 3}, .dtype = DType::kFloat64}}), "");
  EXPECT_NE(GradientError(out, {{.shape = {6}}}), "");
  EXPECT_NE(GradientError(out, {out, out}), "");
  // Fluid's scalars.
  EXPECT_EQ(GradientError({.shape = {1}}, {{.shape = {}}}), "");
  // The height counts, and not the rows held.
  const auto rows = [](int64_t height) {
    return TensorMeta{.shape = {9, 3}, .layout = Layout::SelectedRows(height)};
  };
  EXPECT_EQ(GradientError(out, {rows(2)}), "");
  EXPECT_NE(GradientError(out, {rows(9)}), "");
}

}  // namespace
}  // namespace skiff
