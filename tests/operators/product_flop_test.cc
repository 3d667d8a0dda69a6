// The number of floating-point operations of matrix products and convolutions (OpDef::flop).
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/ir/op_role.h"
#include "framework/op/registry.h"
#include "tests/harness/case_op.h"
#include "tests/harness/prepared_op.h"

namespace skiff {
namespace {

using Shapes = std::vector<std::pair<std::string, Shape>>;

// Returns the flop of an op of the registry with the inputs of the case, whose outputs its shape
// rule sets.
std::optional<double> FlopOf(const harness::OpCase& op_case, const Op& op) {
  const harness::NamedTensors tensors = harness::MakeInputs(op_case, DType::kFloat32);
  const OpDef& def = DefaultOpRegistry().Get(op.type);
  if (!def.flop) return std::nullopt;
  return def.flop(harness::ContextOf(def, op, tensors));
}

std::optional<double> FlopOf(const std::string& type, const Shapes& inputs,
                             const std::vector<std::string>& outputs, AttributeMap attrs = {}) {
  harness::OpCase op_case;
  op_case.type = type;
  for (const auto& [slot, shape] : inputs) op_case.inputs[slot] = {harness::Uniform(shape, 1)};
  for (const std::string& slot : outputs) op_case.outputs.emplace_back(slot, 1);
  op_case.attrs = std::move(attrs);
  return FlopOf(op_case, harness::MakeOp(op_case));
}

// Checks the flop of the forward op, and of its gradient op for either factor and for both.
void ExpectFlop(double expected, const std::string& type, const Shapes& factors,
                const std::string& out, const Shape& out_shape, const AttributeMap& attrs = {}) {
  SCOPED_TRACE(type);
  EXPECT_EQ(FlopOf(type, factors, {out}, attrs), expected);
  Shapes inputs = factors;
  inputs.emplace_back(out + "@GRAD", out_shape);
  const std::string left = factors[0].first + "@GRAD";
  const std::string right = factors[1].first + "@GRAD";
  EXPECT_EQ(FlopOf(type + "_grad", inputs, {left}, attrs), expected);
  EXPECT_EQ(FlopOf(type + "_grad", inputs, {right}, attrs), expected);
  EXPECT_EQ(FlopOf(type + "_grad", inputs, {left, right}, attrs), 2 * expected);
}

TEST(ProductFlop, CountsMatrixProducts) {
  // [2, 15] x [15, 7]
  ExpectFlop(2 * 2 * 15 * 7, "mul", {{"X", {2, 3, 5}}, {"Y", {15, 7}}}, "Out", {2, 7});
  ExpectFlop(2 * 6 * 5 * 7, "mul", {{"X", {2, 3, 5}}, {"Y", {5, 7}}}, "Out", {2, 3, 7},
             {{"x_num_col_dims", 2}});
  EXPECT_EQ(FlopOf("linear", {{"X", {2, 3, 5}}, {"Y", {7, 5}}, {"Bias", {7}}}, {"Out"},
                   {{"x_num_col_dims", int32_t{2}}, {"trans_y", true}}),
            2 * 6 * 5 * 7);
  const Shapes batch = {{"X", {4, 2, 3}}, {"Y", {4, 3, 7}}};
  const double products = 4 * 2 * 2 * 3 * 7;
  for (const char* type : {"matmul", "matmul_v2", "bmm"}) {
    ExpectFlop(products, type, batch, "Out", {4, 2, 7});
  }
  const Shapes transposed = {{"X", {4, 3, 2}}, {"Y", {4, 3, 7}}};
  ExpectFlop(products, "matmul", transposed, "Out", {4, 2, 7}, {{"transpose_X", true}});
  ExpectFlop(products, "matmul_v2", transposed, "Out", {4, 2, 7}, {{"trans_x", true}});
  // A vector is a row, whatever the attribute.
  ExpectFlop(2 * 3 * 7, "matmul_v2", {{"X", {3}}, {"Y", {3, 7}}}, "Out", {7}, {{"trans_x", true}});
}

TEST(ProductFlop, CountsTheProductsOfAddmmWithoutTheSum) {
  const Shapes inputs = {{"Input", {2, 7}}, {"X", {2, 3}}, {"Y", {3, 7}}};
  EXPECT_EQ(FlopOf("addmm", inputs, {"Out"}), 2 * 2 * 3 * 7);
  Shapes of_gradient = inputs;
  of_gradient.emplace_back("Out@GRAD", Shape{2, 7});
  EXPECT_EQ(FlopOf("addmm_grad", of_gradient, {"Input@GRAD", "Y@GRAD"}), 2 * 2 * 3 * 7);
}

TEST(ProductFlop, CountsConvolutions) {
  // Each element of Output sums 2 channels of a group over 3 x 3.
  ExpectFlop(2.0 * (6 * 5 * 5) * (2 * 9), "conv2d",
             {{"Input", {1, 4, 5, 5}}, {"Filter", {6, 2, 3, 3}}}, "Output", {1, 6, 5, 5},
             {{"groups", 2}, {"paddings", std::vector<int32_t>{1, 1}}});
  ExpectFlop(2.0 * (4 * 2 * 2) * 9, "depthwise_conv2d",
             {{"Input", {1, 4, 5, 5}}, {"Filter", {4, 1, 3, 3}}}, "Output", {1, 4, 2, 2},
             {{"groups", 4}, {"strides", std::vector<int32_t>{2, 2}}});
  ExpectFlop(2.0 * (6 * 3 * 3 * 3) * (4 * 8), "conv3d",
             {{"Input", {1, 4, 4, 4, 4}}, {"Filter", {6, 4, 2, 2, 2}}}, "Output", {1, 6, 3, 3, 3});
}

TEST(ProductFlop, CountsTransposedConvolutions) {
  // Each element of Input goes into 3 channels of a group over 3 x 3.
  ExpectFlop(2.0 * (4 * 2 * 2) * (3 * 9), "conv2d_transpose",
             {{"Input", {1, 4, 2, 2}}, {"Filter", {4, 3, 3, 3}}}, "Output", {1, 6, 5, 5},
             {{"groups", 2}, {"strides", std::vector<int32_t>{2, 2}}});
  ExpectFlop(2.0 * (4 * 2 * 2) * 9, "depthwise_conv2d_transpose",
             {{"Input", {1, 4, 2, 2}}, {"Filter", {4, 1, 3, 3}}}, "Output", {1, 4, 4, 4},
             {{"groups", 4}});
  ExpectFlop(2.0 * (4 * 8) * (6 * 8), "conv3d_transpose",
             {{"Input", {1, 4, 2, 2, 2}}, {"Filter", {4, 6, 2, 2, 2}}}, "Output", {1, 6, 3, 3, 3});
}

TEST(ProductFlop, CountsTheWeightsThatARecurrentLayerHas) {
  harness::OpCase op_case;
  op_case.type = "attention_decoder";
  op_case.inputs = {{"Input", {harness::Ragged(harness::Uniform({4, 9}, 1), {3, 1})}},
                    {"Encoded", {harness::Ragged(harness::Uniform({5, 2}, 1), {4, 1})}},
                    {"Keys", {harness::Uniform({5, 3}, 1)}},
                    {"Weight", {harness::Uniform({3, 9}, 1)}},
                    {"ContextWeight", {harness::Uniform({2, 9}, 1)}}};
  op_case.outputs = {{"Hidden", 1}};
  op_case.attrs = {{"score", "dot"}};
  Op op = harness::MakeOp(op_case);
  const double expected = 2 * 4 * (3 * 9 + 2 * 9);
  EXPECT_EQ(FlopOf(op_case, op), expected);
  op.SetInput("QueryWeight", {kEmptyVarName});
  EXPECT_EQ(FlopOf(op_case, op), expected) << "with a slot that isn't connected";
}

TEST(ProductFlop, IsUnknownForOtherOps) {
  EXPECT_FALSE(FlopOf("relu", {{"X", {2, 3}}}, {"Out"}).has_value());
  EXPECT_FALSE(
      FlopOf("relu_grad", {{"Out", {2, 3}}, {"Out@GRAD", {2, 3}}}, {"X@GRAD"}).has_value());
}

}  // namespace
}  // namespace skiff
