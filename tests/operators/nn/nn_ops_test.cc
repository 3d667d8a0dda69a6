// Errors and choices, which the cases can't express.
#include "operators/nn/nn_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "tests/harness/case_op.h"
#include "tests/harness/prepared_op.h"

namespace skiff {
namespace {

using ::testing::HasSubstr;

// The message of the Error that inference of an op on an image x and filters w throws.
std::string InferenceError(const std::string& type, const AttributeMap& attrs) {
  OpRegistry registry;
  RegisterNnOps(registry);
  Program program;
  program.root()->CreateVar({.name = "x", .dims = {2, 3, 8, 8}});
  program.root()->CreateVar({.name = "w", .dims = {4, 3, 3, 3}});
  Op op(type);
  op.attrs = attrs;
  if (type == "conv2d") {
    op.SetInput("Input", {"x"}).SetInput("Filter", {"w"}).SetOutput("Output", {"y"});
  } else {
    op.SetInput("X", {"x"}).SetOutput("Out", {"y"});
  }
  try {
    InferOp(registry, program.root(), &op);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Windows, OfSizesBeyond32BitsAreAnError) {
  const int64_t wide = int64_t{1} << 62;
  const std::vector<int64_t> sizes{wide, wide};
  for (const char* name : {"strides", "paddings", "dilations"}) {
    EXPECT_THAT(InferenceError("conv2d", {{name, sizes}}),
                HasSubstr(std::string("conv2d: ") + name +
                          " = [4611686018427387904, 4611686018427387904]: expected values from"));
  }
  EXPECT_THAT(InferenceError("pool2d", {{"pooling_type", std::string("max")}, {"ksize", sizes}}),
              HasSubstr("pool2d: ksize = "));
  EXPECT_EQ(InferenceError("conv2d", {{"dilations", std::vector<int64_t>{2, 3}}}), "no error");
}

TEST(Windows, ThatReachBeyondTheInputAreAnError) {
  const std::vector<int32_t> most{2147483647, 2147483647};
  EXPECT_THAT(InferenceError("conv2d", {{"dilations", most}}),
              HasSubstr("a window of 4294967295 pixels does not fit the input's height of 8"));
}

// A batch of images that LoD groups keeps its LoD.
TEST(Windows, KeepTheLodLevel) {
  OpRegistry registry;
  RegisterNnOps(registry);
  Program program;
  Block* root = program.root();
  root->CreateVar({.name = "images", .dims = {2, 3, 8, 8}, .lod_level = 1});
  root->CreateVar({.name = "volumes", .dims = {2, 3, 8, 8, 8}, .lod_level = 1});
  root->CreateVar({.name = "filter", .dims = {3, 3, 3, 3}});
  root->CreateVar({.name = "filter_a_channel", .dims = {3, 1, 3, 3}});
  root->CreateVar({.name = "filter_of_volumes", .dims = {3, 3, 3, 3, 3}});
  const auto level = [&](const char* type, const char* from, const char* filter) {
    Op op(type);
    op.SetInput("Input", {from}).SetInput("Filter", {filter}).SetOutput("Output", {"y"});
    op.SetAttr("groups", std::string(filter) == "filter_a_channel" ? 3 : 1);
    InferOp(registry, root, &op);
    const int32_t found = root->GetVar("y")->lod_level;
    root->RemoveVars({"y"});
    return found;
  };
  const auto pooled_level = [&](const char* type, const char* from, int axes) {
    Op op(type);
    op.SetInput("X", {from}).SetOutput("Out", {"y"}).SetAttr("pooling_type", std::string("max"));
    op.SetAttr("ksize", std::vector<int32_t>(static_cast<size_t>(axes), 2));
    InferOp(registry, root, &op);
    const int32_t found = root->GetVar("y")->lod_level;
    root->RemoveVars({"y"});
    return found;
  };
  EXPECT_EQ(level("conv2d", "images", "filter"), 1);
  EXPECT_EQ(level("depthwise_conv2d", "images", "filter_a_channel"), 1);
  EXPECT_EQ(level("conv2d_transpose", "images", "filter"), 1);
  EXPECT_EQ(level("conv3d", "volumes", "filter_of_volumes"), 1);
  EXPECT_EQ(pooled_level("pool2d", "images", 2), 1);
  EXPECT_EQ(pooled_level("pool3d", "volumes", 3), 1);
}

// oneDNN's products of one column a channel take many times as long as its loops over blocks, which
// need workspaces for the images.
TEST(DepthwiseConvolution, BlocksPlainImages) {
  const harness::Array image = harness::Uniform({2, 16, 7, 6}, 1);
  harness::OpCase op_case{.type = "depthwise_conv2d"};
  op_case.inputs = {{"Input", {image}}, {"Filter", {harness::Uniform({16, 1, 3, 3}, 2)}}};
  op_case.outputs = {{"Output", 1}};
  op_case.attrs = {{"groups", 16}, {"paddings", std::vector<int32_t>{1, 1}}};
  const Op op = harness::MakeOp(op_case);
  const harness::PreparedOp prepared(DefaultOpRegistry(), op,
                                     harness::MakeInputs(op_case, DType::kFloat32));
  EXPECT_EQ(prepared.candidate(), "onednn");
  EXPECT_GE(prepared.workspace_bytes(),
            2 * ByteCount(image.shape.element_count(), DType::kFloat32));
}

// The message of the Error that inference of batch_norm on a float32 image throws if `slot` is of
// the dtype.
std::string BatchNormError(const std::string& slot, DType dtype) {
  OpRegistry registry;
  RegisterNnOps(registry);
  Program program;
  program.root()->CreateVar({.name = "x", .dims = {2, 3, 4, 4}});
  Op op("batch_norm");
  op.SetInput("X", {"x"}).SetOutput("Y", {"y"});
  op.SetOutput("MeanOut", {"mean_out"}).SetOutput("VarianceOut", {"variance_out"});
  for (const char* side : {"Scale", "Bias", "Mean", "Variance", "MomentumTensor"}) {
    const int64_t count = side == std::string("MomentumTensor") ? 1 : 3;
    program.root()->CreateVar(
        {.name = side, .dtype = side == slot ? dtype : DType::kFloat32, .dims = {count}});
    op.SetInput(side, {side});
  }
  try {
    InferOp(registry, program.root(), &op);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(BatchNorm, RefusesSideInputsOfAnotherDType) {
  for (const char* slot : {"Scale", "Bias", "Mean", "Variance", "MomentumTensor"}) {
    EXPECT_EQ(BatchNormError(slot, DType::kFloat32), "no error");
    EXPECT_THAT(BatchNormError(slot, DType::kFloat64),
                HasSubstr(std::string("batch_norm: ") + slot + " is float64 ["));
  }
}

}  // namespace
}  // namespace skiff
