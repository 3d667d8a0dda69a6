// Ops of ONNX at their limits: large, infinite and absurd numbers, extents that only a run knows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "framework/builder/gradients.h"
#include "framework/builder/math.h"
#include "framework/builder/program_guard.h"
#include "framework/ir/program.h"
#include "tests/framework/onnx/imported_model.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kLeastInt = std::numeric_limits<int64_t>::min();
constexpr int64_t kMostInt = std::numeric_limits<int64_t>::max();

// y = op(x, …).
struct OpModel {
  ModelBuilder builder;
  onnx::NodeProto* node;

  OpModel(const std::string& op, const std::vector<int64_t>& x,
          const std::vector<std::string>& others = {}, int32_t type = onnx::TensorProto::FLOAT) {
    builder.Input("x", x, type);
    std::vector<std::string> inputs = {"x"};
    inputs.insert(inputs.end(), others.begin(), others.end());
    node = builder.Node(op, inputs, {"y"});
    builder.graph().add_output()->set_name("y");
  }
};

struct Results {
  Tensor y;
  Tensor dx;  // of the sum of y
};

Results Computed(const OpModel& model, const Tensor& x) {
  Executor exe;
  const InferenceModel imported = Imported(model.builder, &exe);
  Program startup;
  const ProgramGuard guard(imported.program.get(), &startup);
  Block* root = imported.program->root();
  const Variable loss = layers::ReduceSum(Variable(root, "y"));
  const Variable gradient = Gradients(loss, {Variable(root, "x")})[0];
  const auto results = exe.Run(*imported.program, {{"x", x}}, {"y", gradient.name()});
  return {.y = results[0], .dx = results[1]};
}

void ExpectNear(const Tensor& found, const std::vector<double>& expected, double relative) {
  const std::vector<float> numbers = found.ToVector<float>();
  ASSERT_EQ(numbers.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(numbers[i], expected[i], relative * std::abs(expected[i])) << "element " << i;
  }
}

// Compares an op and its gradient with float64.
template <typename Function, typename Derivative>
void ExpectFunction(const std::string& op, const std::vector<float>& xs, const Function& function,
                    const Derivative& derivative) {
  SCOPED_TRACE(op);
  const auto count = static_cast<int64_t>(xs.size());
  const Results results = Computed(OpModel(op, {count}), Tensor::FromValues<float>({count}, xs));
  std::vector<double> ys, derivatives;
  for (const float x : xs) {
    ys.push_back(function(double{x}));
    derivatives.push_back(derivative(double{x}));
  }
  ExpectNear(results.y, ys, 1e-6);
  ExpectNear(results.dx, derivatives, 1e-6);
}

TEST(ImportOnnxLimits, HyperbolicFunctionsKeepTheirDigits) {
  const auto sinh = [](double x) { return std::sinh(x); };
  const auto cosh = [](double x) { return std::cosh(x); };
  const std::vector<float> xs = {-89, -18, -10, -1, -1e-6f, 0, 1e-6f, 0.5f, 10, 18, 88.9f, 89};
  ExpectFunction("Sinh", xs, sinh, cosh);
  ExpectFunction("Cosh", {-89, -18, -1, -0.25f, 0, 0.5f, 10, 88.9f, 89}, cosh, sinh);
  ExpectFunction(
      "Asinh", {-1e20f, -3e38f, -1e4f, -3, -1e-6f, 0, 1e-6f, 0.5f, 9e3f, 1.1e4f, 1e20f, 3e38f},
      [](double x) { return std::asinh(x); }, [](double x) { return 1 / std::hypot(x, 1); });
  ExpectFunction(
      "Acosh", {1.0001f, 1.5f, 3, 9e3f, 1.1e4f, 1e20f, 3e38f},
      [](double x) { return std::acosh(x); },
      [](double x) { return 1 / (std::sqrt(x - 1) * std::sqrt(x + 1)); });
}

TEST(ImportOnnxLimits, HyperbolicFunctionsOfInfinity) {
  const Tensor x = Tensor::FromValues<float>({3}, {-kInfinity, kInfinity, 1e3f});
  Executor exe;
  for (const char* op : {"Sinh", "Asinh"}) {
    const InferenceModel model = Imported(OpModel(op, {3}).builder, &exe);
    const auto y = exe.Run(*model.program, {{"x", x}}, {"y"})[0].ToVector<float>();
    EXPECT_EQ(y[0], -kInfinity) << op;
    EXPECT_EQ(y[1], kInfinity) << op;
  }
}

TEST(ImportOnnxLimits, BlocksWhoseSquareOverflows) {
  OpModel model("DepthToSpace", {1, int64_t{1} << 33, 1, 1});
  SetInt("blocksize", int64_t{1} << 32, model.node);
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, model.builder), HasSubstr("blocksize"));
}

TEST(ImportOnnxLimits, UnpooledExtentsThatOverflow) {
  OpModel model("MaxUnpool", {1, 1, int64_t{1} << 40, 1}, {"places"});
  model.builder.Input("places", {1, 1, int64_t{1} << 40, 1}, onnx::TensorProto::INT64);
  SetInts("kernel_shape", {1, 1}, model.node);
  SetInts("strides", {1 << 30, 1}, model.node);
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, model.builder), HasSubstr("1073741824"));
}

TEST(ImportOnnxLimits, ExtentsOfTransposedConvolutionsThatOverflow) {
  const auto refusal = [](ErrorCode code, int64_t extent, const std::string& attribute,
                          int64_t number) {
    OpModel model("ConvTranspose", {1, 1, extent}, {"w"});
    model.builder.Floats("w", {1, 1, 1}, {1});
    SetInts("strides", {1 << 30}, model.node);
    SetInts("output_shape", {4}, model.node);
    SetInts(attribute, {number}, model.node);
    if (attribute == "output_shape") model.node->mutable_attribute()->DeleteSubrange(1, 1);
    return Refusal(code, model.builder);
  };
  EXPECT_THAT(refusal(ErrorCode::kUnimplemented, int64_t{1} << 40, "output_padding", 0),
              HasSubstr("a number of its output is 1099511627776"));
  EXPECT_THAT(refusal(ErrorCode::kUnimplemented, 4, "output_padding", kMostInt),
              HasSubstr(StrCat("a number of its output is ", kMostInt)));
  EXPECT_THAT(refusal(ErrorCode::kInvalidArgument, 4, "output_padding", kLeastInt),
              HasSubstr("an output_padding below 0"));
  EXPECT_THAT(refusal(ErrorCode::kInvalidArgument, 4, "output_shape", kLeastInt),
              HasSubstr("an extent below 1"));
}

TEST(ImportOnnxLimits, HyperbolicFunctionsInHalf) {
  for (const auto& [op, expected] : {std::pair("Asinh", 6.397f), std::pair("Acosh", 6.397f)}) {
    ModelBuilder builder;
    builder.Input("x", {1});
    SetInt("to", onnx::TensorProto::FLOAT16, builder.Node("Cast", {"x"}, {"half"}));
    builder.Node(op, {"half"}, {"result"});
    SetInt("to", onnx::TensorProto::FLOAT, builder.Node("Cast", {"result"}, {"y"}));
    builder.Output("y", {1});
    Executor exe;
    const InferenceModel model = Imported(builder, &exe);
    const Tensor x = Tensor::FromValues<float>({1}, {300});
    EXPECT_NEAR(exe.Run(*model.program, {{"x", x}}, {"y"})[0].Item<float>(), expected, 0.01);
  }
}

// Exporters drop axes whose extent they couldn't tell.
TEST(ImportOnnxLimits, DropsOnlyAxesOfExtent1) {
  for (const int64_t opset : {11, 17}) {
    OpModel model("Squeeze", {-1, 2});
    model.builder.model.mutable_opset_import(0)->set_version(opset);
    if (opset < 13) {
      SetInts("axes", {0}, model.node);
    } else {
      model.builder.Ints("axes", {-2});
      model.node->add_input("axes");
    }
    const Results results = Computed(model, Tensor::FromValues<float>({1, 2}, {3, 4}));
    EXPECT_EQ(results.y.shape(), Shape({2}));
    EXPECT_THAT(results.y.ToVector<float>(), ElementsAre(3, 4));
    EXPECT_EQ(results.dx.shape(), Shape({1, 2}));
    EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument,
                          [&] {
                            Computed(model, Tensor::FromValues<float>({2, 2}, {3, 4, 5, 6}));
                          }),
                HasSubstr("has the extent 2, expected 1"));
  }
  OpModel known("Squeeze", {5, 2}, {"axes"});
  known.builder.Ints("axes", {0});
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, known.builder), HasSubstr("the extent 5"));
}

// Windows of two elements with a gap, around the image.
OpModel WindowsWithGaps(int32_t type) {
  OpModel model("MaxPool", {1, 1, 4}, {}, type);
  SetInts("kernel_shape", {2}, model.node);
  SetInts("dilations", {2}, model.node);
  SetInts("pads", {1, 1}, model.node);
  return model;
}

TEST(ImportOnnxLimits, BordersAreBelowAllNumbers) {
  const Tensor x = Tensor::FromValues<float>({1, 1, 4}, {7, -kInfinity, -3e38f, -3.4028234e38f});
  const Results results = Computed(WindowsWithGaps(onnx::TensorProto::FLOAT), x);
  EXPECT_THAT(results.y.ToVector<float>(), ElementsAre(-kInfinity, 7, -3.4028234e38f, -3e38f));
  EXPECT_THAT(results.dx.ToVector<float>(), ElementsAre(1, 1, 1, 1));
  const Tensor wide = Tensor::FromValues<double>({1, 1, 4}, {-1e300, -1e305, -1e301, -1e302});
  EXPECT_THAT(Computed(WindowsWithGaps(onnx::TensorProto::DOUBLE), wide).y.ToVector<double>(),
              ElementsAre(-1e305, -1e300, -1e302, -1e301));
}

TEST(ImportOnnxLimits, NormsOfZeros) {
  for (const int64_t p : {1, 2}) {
    OpModel model("LpNormalization", {2, 2});
    SetInt("p", p, model.node);
    const Results results = Computed(model, Tensor::FromValues<float>({2, 2}, {0, 0, 0, -4}));
    EXPECT_THAT(results.y.ToVector<float>(), ElementsAre(0, 0, 0, -1));
    EXPECT_THAT(results.dx.ToVector<float>(),
                Each(testing::Truly([](float d) { return std::isfinite(d); })));
  }
}

TEST(ImportOnnxLimits, RefusesNormsBelow1) {
  OpModel model("LpPool", {1, 1, 4});
  SetInts("kernel_shape", {2}, model.node);
  SetInt("p", 0, model.node);
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, model.builder),
              HasSubstr("p = 0, expected at least 1"));
}

TEST(ImportOnnxLimits, RefusesExtentsBelow0) {
  for (const int64_t extent : {kLeastInt, int64_t{-5}}) {
    OpModel model("CenterCropPad", {4, 4}, {"extents"});
    model.builder.model.mutable_opset_import(0)->set_version(18);
    model.builder.Ints("extents", {extent, 4});
    EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, model.builder),
                HasSubstr(StrCat("an extent of ", extent)));
  }
}

TEST(ImportOnnxLimits, DiagonalsFarOutside) {
  for (const int64_t k : {kLeastInt, kMostInt}) {
    OpModel eye("EyeLike", {2, 2});
    SetInt("k", k, eye.node);
    Executor exe;
    const InferenceModel ones = Imported(eye.builder, &exe);
    const Tensor x = Tensor::FromValues<float>({2, 2}, {1, 2, 3, 4});
    EXPECT_THAT(exe.Run(*ones.program, {{"x", x}}, {"y"})[0].ToVector<float>(), Each(0));
    OpModel upper("Trilu", {2, 2}, {"k"});
    upper.builder.edit().Int("k", k);
    EXPECT_THAT(Computed(upper, x).dx.ToVector<float>(), Each(k < 0 ? 1 : 0));
  }
}

TEST(ImportOnnxLimits, RefusesWholeNumbersBeyondInt64) {
  for (const float axis : {kInfinity, 1e30f, std::numeric_limits<float>::quiet_NaN()}) {
    OpModel model("CumSum", {2, 2}, {"axis"});
    model.builder.Floats("axis", {}, {axis});
    EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, model.builder),
                HasSubstr("expected an int64"));
  }
  // A double would round it to -2^63, and an axis of Skiff to another one.
  OpModel model("CumSum", {2, 2}, {"axis"});
  model.builder.edit().Int("axis", kLeastInt + 1);
  EXPECT_THAT(Refusal(ErrorCode::kInvalidArgument, model.builder),
              HasSubstr(StrCat("axis ", kLeastInt + 1, " is outside")));
}

}  // namespace
}  // namespace skiff
