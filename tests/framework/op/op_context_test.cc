#include "framework/op/op_context.h"

#include <gtest/gtest.h>

#include <string>

#include "framework/base/error.h"

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

}  // namespace
}  // namespace skiff
