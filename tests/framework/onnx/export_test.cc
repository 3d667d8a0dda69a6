#include "framework/onnx/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/onnx/model_file.h"
#include "framework/op/registry.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

onnx::ModelProto Exported(const std::vector<std::string>& feeds,
                          const std::vector<std::string>& fetches, const Program& program,
                          const Scope& scope, const OnnxExportOptions& options = {}) {
  return ParseOnnxModel(OnnxBytes(feeds, fetches, program, scope, options), "test");
}

std::vector<std::string> NodeTypes(const onnx::ModelProto& model) {
  std::vector<std::string> types;
  for (const onnx::NodeProto& node : model.graph().node()) types.push_back(node.op_type());
  return types;
}

std::string RefusalOf(const std::vector<std::string>& feeds,
                      const std::vector<std::string>& fetches, const Program& program,
                      const OnnxExportOptions& options = {}) {
  try {
    const Scope scope;
    OnnxBytes(feeds, fetches, program, scope, options);
    return "no Error";
  } catch (const Error& error) {
    return error.what();
  }
}

// A program of ops on variables that the test declares.
class OpProgram {
 public:
  void Declare(const std::string& name, const std::vector<int64_t>& dims,
               DType dtype = DType::kFloat32) {
    Var var{.name = name};
    var.dtype = dtype;
    var.dims = dims;
    program_.root()->CreateVar(std::move(var));
  }
  void Append(const Op& op) {
    InferOp(DefaultOpRegistry(), program_.root(), program_.root()->AppendOp(op));
  }
  Program& program() { return program_; }

 private:
  Program program_;
};

Op Unary(const std::string& type, const std::string& x, const std::string& out) {
  Op op(type);
  op.SetInput("X", {x}).SetOutput("Out", {out});
  return op;
}

TEST(OnnxExport, KeepsNamesAndMakesSymbolsOfUnknownDims) {
  OpProgram ops;
  ops.Declare("x", {-1, 3});
  ops.Append(Unary("relu", "x", "y"));
  const onnx::ModelProto model = Exported({"x"}, {"y"}, ops.program(), Scope());
  EXPECT_EQ(model.ir_version(), 8);
  ASSERT_EQ(model.opset_import_size(), 1);
  EXPECT_EQ(model.opset_import(0).version(), 17);
  EXPECT_THAT(NodeTypes(model), ElementsAre("Relu"));
  EXPECT_EQ(model.graph().node(0).input(0), "x");
  EXPECT_EQ(model.graph().node(0).output(0), "y");
  const onnx::ValueInfoProto& input = model.graph().input(0);
  EXPECT_EQ(input.name(), "x");
  EXPECT_EQ(input.type().tensor_type().elem_type(), onnx::TensorProto::FLOAT);
  EXPECT_EQ(input.type().tensor_type().shape().dim(0).dim_param(), "x.0");
  EXPECT_EQ(input.type().tensor_type().shape().dim(1).dim_value(), 3);
  EXPECT_EQ(model.graph().output(0).name(), "y");
}

TEST(OnnxExport, TheOpsetDecidesTheVersionOfTheFormat) {
  OpProgram ops;
  ops.Declare("x", {2});
  ops.Append(Unary("relu", "x", "y"));
  const auto version = [&](int opset) {
    return Exported({"x"}, {"y"}, ops.program(), Scope(), {.opset = opset}).ir_version();
  };
  EXPECT_EQ(version(14), 7);
  EXPECT_EQ(version(18), 8);
  EXPECT_EQ(version(21), 10);
  EXPECT_THAT(RefusalOf({"x"}, {"y"}, ops.program(), {.opset = 12}),
              HasSubstr("opset 12, expected 13 to 24"));
}

TEST(OnnxExport, ReductionsHaveTheirAxesWhereTheOpsetHasThem) {
  OpProgram ops;
  ops.Declare("x", {2, 3});
  Op max = Unary("reduce_max", "x", "y");
  max.SetAttr("dim", std::vector<int32_t>{-1});
  ops.Append(max);
  const auto node = [&](int opset) {
    return Exported({"x"}, {"y"}, ops.program(), Scope(), {.opset = opset}).graph().node(0);
  };
  EXPECT_EQ(node(17).input_size(), 1);
  EXPECT_EQ(node(17).attribute(0).name(), "axes");
  EXPECT_EQ(node(18).input_size(), 2);
}

TEST(OnnxExport, GridSampleHasTheNamesOfTheOpset) {
  const auto model = [](const std::vector<int64_t>& x, int opset) {
    OpProgram ops;
    ops.Declare("x", x);
    std::vector<int64_t> grid(x.size(), 2);
    grid.back() = static_cast<int64_t>(x.size()) - 2;
    ops.Declare("grid", grid);
    Op sample("grid_sampler");
    sample.SetInput("X", {"x"}).SetInput("Grid", {"grid"}).SetOutput("Output", {"y"});
    ops.Append(sample);
    if (x.size() == 5 && opset < 20) {
      return RefusalOf({"x", "grid"}, {"y"}, ops.program(), {.opset = opset});
    }
    return Exported({"x", "grid"}, {"y"}, ops.program(), Scope(), {.opset = opset})
        .graph()
        .node(0)
        .attribute(0)
        .s();
  };
  EXPECT_EQ(model({2, 3, 4, 5}, 17), "bilinear");
  EXPECT_EQ(model({2, 3, 4, 5}, 20), "linear");
  EXPECT_EQ(model({2, 3, 4, 5, 6}, 20), "linear");
  EXPECT_THAT(model({2, 3, 4, 5, 6}, 17), HasSubstr("GridSample of volumes"));
}

TEST(OnnxExport, ParametersBecomeInitializers) {
  OpProgram ops;
  ops.Declare("x", {-1, 2});
  Var weight{.name = "w"};
  weight.dims = {2, 1};
  weight.persistable = true;
  ops.program().root()->CreateVar(std::move(weight));
  Op mul("mul");
  mul.SetInput("X", {"x"}).SetInput("Y", {"w"}).SetOutput("Out", {"y"});
  ops.Append(mul);
  Scope scope;
  scope.Set("w", Tensor::FromValues<float>({2, 1}, {1.5f, -2.0f}));
  const onnx::ModelProto model = Exported({"x"}, {"y"}, ops.program(), scope);
  EXPECT_THAT(NodeTypes(model), ElementsAre("MatMul"));
  ASSERT_EQ(model.graph().initializer_size(), 1);
  EXPECT_EQ(model.graph().initializer(0).name(), "w");
  EXPECT_EQ(model.graph().initializer(0).raw_data(), std::string("\0\0\xC0\x3F\0\0\0\xC0", 8));
  EXPECT_EQ(model.graph().input_size(), 1);
  EXPECT_THAT(RefusalOf({"x"}, {"y"}, ops.program()), HasSubstr("\"w\""));
}

TEST(OnnxExport, AVariableThatIsWrittenTwiceHasTwoValues) {
  OpProgram ops;
  ops.Declare("x", {2});
  ops.Append(Unary("exp", "x", "y"));
  ops.Append(Unary("relu", "y", "y"));
  ops.Append(Unary("tanh", "y", "z"));
  const onnx::ModelProto model = Exported({"x"}, {"z"}, ops.program(), Scope());
  ASSERT_THAT(NodeTypes(model), ElementsAre("Exp", "Relu", "Tanh"));
  EXPECT_EQ(model.graph().node(0).output(0), "y");
  EXPECT_NE(model.graph().node(1).output(0), "y");
  EXPECT_EQ(model.graph().node(2).input(0), model.graph().node(1).output(0));
}

TEST(OnnxExport, AFetchThatNoOpMakesIsACopy) {
  OpProgram ops;
  ops.Declare("x", {2});
  ops.Append(Unary("relu", "x", "y"));
  const onnx::ModelProto model = Exported({"x"}, {"y", "x"}, ops.program(), Scope());
  EXPECT_THAT(NodeTypes(model), ElementsAre("Relu", "Identity"));
  EXPECT_EQ(model.graph().output(1).name(), "x.out");
}

TEST(OnnxExport, AFeedThatIsOverwrittenIsAnotherOutput) {
  OpProgram ops;
  ops.Declare("x", {2});
  ops.Append(Unary("relu", "x", "x"));
  ops.Append(Unary("exp", "x", "y"));
  const onnx::ModelProto model = Exported({"x"}, {"y", "x"}, ops.program(), Scope());
  EXPECT_THAT(NodeTypes(model), ElementsAre("Relu", "Exp"));
  EXPECT_EQ(model.graph().node(1).input(0), "x.out");
  EXPECT_EQ(model.graph().output(0).name(), "y");
  EXPECT_EQ(model.graph().output(1).name(), "x.out");
}

TEST(OnnxExport, AParameterThatIsFetchedGivesItsNameToTheOutput) {
  OpProgram ops;
  ops.Declare("x", {2});
  Var weight{.name = "w"};
  weight.dims = {2};
  weight.persistable = true;
  ops.program().root()->CreateVar(weight);
  Op add("elementwise_add");
  add.SetInput("X", {"x"}).SetInput("Y", {"w"}).SetOutput("Out", {"y"});
  ops.Append(add);
  Scope scope;
  scope.Set("w", Tensor::FromValues<float>({2}, {1.5f, -2.0f}));
  const auto expect = [&](const std::vector<std::string>& types) {
    const onnx::ModelProto model = Exported({"x"}, {"w", "y"}, ops.program(), scope);
    EXPECT_EQ(NodeTypes(model), types);
    EXPECT_EQ(model.graph().output(0).name(), "w");
    EXPECT_EQ(model.graph().output(1).name(), "y");
    ASSERT_EQ(model.graph().initializer_size(), 1);
    const std::string name = model.graph().initializer(0).name();
    EXPECT_NE(name, "w");
    EXPECT_EQ(model.graph().node(0).input(1), name);
    EXPECT_EQ(model.graph().node(1).input(0), name);
    EXPECT_EQ(model.graph().node(1).output(0), "w");
  };
  expect({"Add", "Identity"});
  ops.Append(Unary("relu", "w", "w"));
  expect({"Add", "Relu"});
}

TEST(OnnxExport, HalfIsComputedInFloat32AndMovedAsItIs) {
  OpProgram ops;
  ops.Declare("x", {2, 2}, DType::kFloat16);
  ops.Append(Unary("exp", "x", "y"));
  Op transpose = Unary("transpose2", "y", "z");
  transpose.SetAttr("axis", std::vector<int32_t>{1, 0});
  ops.Append(transpose);
  const onnx::ModelProto model = Exported({"x"}, {"z"}, ops.program(), Scope());
  EXPECT_THAT(NodeTypes(model), ElementsAre("Cast", "Exp", "Cast", "Transpose"));
}

TEST(OnnxExport, OfATrainingOnlyTheEvaluationIsWritten) {
  Program main;
  Program startup;
  std::string prediction;
  {
    const ProgramGuard guard(&main, &startup);
    const Variable x = layers::Data("x", {-1, 4});
    const Variable hidden = layers::Dropout(x, 0.5f);
    prediction = hidden.name();
    layers::Mean(hidden);
  }
  const std::unique_ptr<Program> before = main.Clone();
  const onnx::ModelProto model = Exported({"x"}, {prediction}, main, Scope());
  EXPECT_THAT(NodeTypes(model), ElementsAre("Identity"));  // the mean isn't fetched
  EXPECT_EQ(*before, main);
}

TEST(OnnxExport, ListsEverythingThatHasNoForm) {
  OpProgram ops;
  ops.Declare("x", {2, 2}, DType::kInt32);
  ops.Append(Unary("pow", "x", "a"));
  ops.Append(Unary("relu", "a", "b"));
  Op random("uniform_random");
  random.SetOutput("Out", {"r"}).SetAttr("shape", std::vector<int64_t>{2});
  ops.Append(random);
  const std::string text = RefusalOf({"x"}, {"b", "r"}, ops.program());
  EXPECT_THAT(text, HasSubstr("pow (block 0, op #0): powers of integers"));
  EXPECT_THAT(text, HasSubstr("uniform_random (block 0, op #2): the op has no form in ONNX"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("relu")));
}

TEST(OnnxExport, BitsOfWholeNumbersNeedTheirOpset) {
  OpProgram ops;
  ops.Declare("x", {2}, DType::kInt32);
  ops.Declare("b", {2}, DType::kBool);
  Op bits("bitwise_xor");
  bits.SetInput("X", {"x"}).SetInput("Y", {"x"}).SetOutput("Out", {"bits"});
  ops.Append(bits);
  ops.Append(Unary("bitwise_not", "b", "turned"));
  EXPECT_THAT(RefusalOf({"x"}, {"bits"}, ops.program()), HasSubstr("operators on bits"));
  EXPECT_THAT(NodeTypes(Exported({"x"}, {"bits"}, ops.program(), Scope(), {.opset = 18})),
              ElementsAre("BitwiseXor"));
  EXPECT_THAT(NodeTypes(Exported({"b"}, {"turned"}, ops.program(), Scope())), ElementsAre("Not"));
}

// ONNX repeats no axis of extent 1, and runtimes differ in what "..." may be.
TEST(OnnxExport, TheEquationOfAnEinsumIsSpelledOut) {
  OpProgram ops;
  ops.Declare("x", {2, 1, 3});
  ops.Declare("y", {-1, 3, 4});
  Op einsum("einsum");
  einsum.SetInput("Operands", {"x", "y"}).SetAttr("equation", "...j, ...jk");
  einsum.SetOutput("Out", {"z"}).SetOutput("InnerCache", {"x.saved", "y.saved"});
  ops.Append(einsum);
  const onnx::ModelProto model = Exported({"x", "y"}, {"z"}, ops.program(), Scope());
  ASSERT_THAT(NodeTypes(model), ElementsAre("Squeeze", "Einsum"));
  const onnx::NodeProto& node = model.graph().node(1);
  EXPECT_EQ(node.input(0), model.graph().node(0).output(0));
  EXPECT_EQ(node.input(1), "y");
  EXPECT_EQ(node.attribute(0).name(), "equation");
  EXPECT_EQ(node.attribute(0).s(), "bj,ajk->bak");
}

TEST(OnnxExport, RefusesAnOutputThatTheGraphDoesNotHave) {
  OpProgram ops;
  ops.Declare("x", {2, 3});
  Op norm("layer_norm");
  norm.SetInput("X", {"x"}).SetOutput("Y", {"y"}).SetOutput("Variance", {"v"});
  ops.Append(norm);
  ops.Append(Unary("exp", "v", "z"));
  EXPECT_THAT(RefusalOf({"x"}, {"y", "z"}, ops.program()),
              HasSubstr("it reads \"v\", which has no value: this output of layer_norm"));
}

TEST(OnnxExport, RefusesWrongFeedsAndFetches) {
  OpProgram ops;
  ops.Declare("x", {2});
  ops.Declare("unused", {2});
  ops.Append(Unary("relu", "x", "y"));
  const Program& program = ops.program();
  EXPECT_THAT(RefusalOf({"no"}, {"y"}, program), HasSubstr("feed \"no\" is no variable"));
  EXPECT_THAT(RefusalOf({"x"}, {"no"}, program), HasSubstr("fetch \"no\" is no variable"));
  EXPECT_THAT(RefusalOf({"x", "x"}, {"y"}, program), HasSubstr("is named twice"));
  EXPECT_THAT(RefusalOf({"x", "unused"}, {"y"}, program), HasSubstr("isn't needed"));
  EXPECT_THAT(RefusalOf({"x"}, {}, program), HasSubstr("there is no fetch"));
}

}  // namespace
}  // namespace skiff
