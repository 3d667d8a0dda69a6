// Errors, non-finite values, and sums that must not depend on the number of threads, which the
// cases can't express.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "operators/common/broadcast.h"
#include "operators/elementwise/elementwise_ops.h"
#include "tests/harness/error_text.h"
#include "tests/harness/instruction_set.h"
#include "tests/harness/prepared_op.h"

namespace skiff {
namespace {

using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const OpRegistry& Registry() {
  static const OpRegistry* const registry = [] {
    auto* made = new OpRegistry;
    RegisterElementwiseOps(*made);
    return made;
  }();
  return *registry;
}

Op BinaryOp(const std::string& type) {
  Op op(type);
  op.SetInput("X", {"x"}).SetInput("Y", {"y"}).SetOutput("Out", {"out"});
  return op;
}

harness::NamedTensors RunOp(const Op& op, const harness::NamedTensors& inputs) {
  harness::PreparedOp prepared(Registry(), op, inputs);
  prepared.Load(inputs, 0x7f);
  prepared.Run();
  return prepared.Outputs();
}

std::string MessageOf(const Op& op, const harness::NamedTensors& inputs) {
  return InvalidArgumentText([&] { RunOp(op, inputs); });
}

std::vector<float> RunUnary(const std::string& type, const std::vector<float>& x) {
  Op op(type);
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"});
  const Shape shape = {static_cast<int64_t>(x.size())};
  return RunOp(op, {{"x", Tensor::FromValues<float>(shape, x)}}).at("out").ToVector<float>();
}

// On every instruction set, with enough copies of the values for vectors and for the rest of a
// loop.
void ExpectUnary(const std::string& type, const std::vector<float>& x,
                 const std::vector<float>& expected) {
  std::vector<float> many;
  for (int copy = 0; copy < 19; ++copy) many.insert(many.end(), x.begin(), x.end());
  for (const int64_t set : harness::InstructionSets()) {
    const harness::InstructionSetLimit limit(set);
    const std::vector<float> found = RunUnary(type, many);
    for (size_t i = 0; i < many.size(); ++i) {
      const float wanted = expected[i % x.size()];
      SCOPED_TRACE(type + " on " + harness::InstructionSetName(set));
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(found[i])) << "of " << many[i] << ": " << found[i];
      } else {
        EXPECT_FLOAT_EQ(found[i], wanted) << "of " << many[i];
      }
    }
  }
}

TEST(Unary, TakesInfinitiesAndNan) {
  const std::vector<float> x = {kInfinity, -kInfinity, kNan, 0.0f, 200.0f, -200.0f};
  ExpectUnary("relu", x, {kInfinity, 0, kNan, 0, 200, 0});
  ExpectUnary("tanh", x, {1, -1, kNan, 0, 1, -1});
  ExpectUnary("sigmoid", x, {1, 0, kNan, 0.5f, 1, 0});
  ExpectUnary("exp", x, {kInfinity, 0, kNan, 1, kInfinity, 0});
  ExpectUnary("expm1", x, {kInfinity, -1, kNan, 0, kInfinity, -1});
  ExpectUnary("log1p", x, {kInfinity, kNan, kNan, 0, std::log1p(200.0f), kNan});
  ExpectUnary("erf", x, {1, -1, kNan, 0, 1, -1});
  ExpectUnary("log", x, {kInfinity, kNan, kNan, -kInfinity, std::log(200.0f), kNan});
  ExpectUnary("sqrt", x, {kInfinity, kNan, kNan, 0, std::sqrt(200.0f), kNan});
  ExpectUnary("sign", x, {1, -1, kNan, 0, 1, -1});
  ExpectUnary("leaky_relu", x, {kInfinity, -kInfinity, kNan, 0, 200, -200 * 0.02f});
  ExpectUnary("hard_sigmoid", x, {1, 0, kNan, 0.5f, 1, 0});
  ExpectUnary("relu6", x, {6, 0, kNan, 0, 6, 0});
  ExpectUnary("elu", x, {kInfinity, -1, kNan, 0, 200, -1});
  ExpectUnary("selu", x, {kInfinity, -1.7580993f, kNan, 0, 210.1402f, -1.7580993f});
  ExpectUnary("gelu", x, {kInfinity, 0, kNan, 0, 200, 0});
  ExpectUnary("swish", x, {kInfinity, 0, kNan, 0, 200, 0});
  ExpectUnary("hard_swish", x, {kInfinity, 0, kNan, 0, 200, 0});
  ExpectUnary("softplus", x, {kInfinity, 0, kNan, 0.6931472f, 200, 0});
  ExpectUnary("softsign", x, {1, -1, kNan, 0, 200.0f / 201, -200.0f / 201});
  ExpectUnary("mish", x, {kInfinity, 0, kNan, 0, 200, 0});
  ExpectUnary("rsqrt", x, {0, kNan, kNan, kInfinity, 1 / std::sqrt(200.0f), kNan});
  ExpectUnary("reciprocal", x, {0, 0, kNan, kInfinity, 0.005f, -0.005f});
  ExpectUnary("abs", x, {kInfinity, kInfinity, kNan, 0, 200, 200});
  ExpectUnary("ceil", x, {kInfinity, -kInfinity, kNan, 0, 200, -200});
  ExpectUnary("round", x, {kInfinity, -kInfinity, kNan, 0, 200, -200});
  ExpectUnary("pow", x, {kInfinity, -kInfinity, kNan, 0, 200, -200});
}

// Gives the gradient op of a unary op X, Out and Out@GRAD, of which it takes what it has.
template <typename T>
std::vector<T> SlopesOf(const std::string& type, const std::vector<T>& x) {
  const Shape shape = {static_cast<int64_t>(x.size())};
  Op forward(type);
  forward.SetInput("X", {"x"}).SetOutput("Out", {"out"});
  harness::NamedTensors values = {{"x", Tensor::FromValues<T>(shape, x)}};
  values["out"] = RunOp(forward, values).at("out");
  values["dout"] = Tensor::FromValues<T>(shape, std::vector<T>(x.size(), T{1}));
  Op gradient(type + "_grad");
  const OpDef& def = Registry().Get(gradient.type);
  if (def.FindInput("X") != nullptr) gradient.SetInput("X", {"x"});
  if (def.FindInput("Out") != nullptr) gradient.SetInput("Out", {"out"});
  gradient.SetInput("Out@GRAD", {"dout"}).SetOutput("X@GRAD", {"dx"});
  return RunOp(gradient, values).at("dx").ToVector<T>();
}

template <typename T>
void ExpectSlopes(const std::string& type, double above, double below) {
  constexpr T kEnd = std::numeric_limits<T>::infinity();
  // Large finite numbers have the limit, too.
  const std::vector<T> of = {
      kEnd,    -kEnd,   std::numeric_limits<T>::max(), std::numeric_limits<T>::lowest(),
      T{1e18}, T{-1e18}};
  std::vector<T> x;
  for (int copy = 0; copy < 13; ++copy) x.insert(x.end(), of.begin(), of.end());
  const std::vector<T> found = SlopesOf(type, x);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(found[i]), x[i] > 0 ? above : below, 1e-6)
        << type << " at " << x[i];
  }
}

// Of ops without cases of it (AddLimitCases).
TEST(UnaryGradient, IsTheLimitFarFromZero) {
  struct Limits {
    std::string type;
    double above;
    double below;
  };
  const std::vector<Limits> ops = {{"softplus", 1, 0},
                                   {"relu", 1, 0},
                                   {"relu6", 0, 0},
                                   {"elu", 1, 0},
                                   {"selu", static_cast<double>(1.0507009873554805f), 0},
                                   {"tanh", 0, 0},
                                   {"sigmoid", 0, 0},
                                   {"hard_sigmoid", 0, 0},
                                   {"leaky_relu", 1, static_cast<double>(0.02f)},
                                   {"abs", 1, -1},
                                   {"reciprocal", 0, 0},
                                   {"log1p", 0, 0}};
  for (const int64_t set : harness::InstructionSets()) {
    const harness::InstructionSetLimit limit(set);
    SCOPED_TRACE(harness::InstructionSetName(set));
    for (const Limits& op : ops) {
      ExpectSlopes<float>(op.type, op.above, op.below);
      ExpectSlopes<double>(op.type, op.above, op.below);
    }
  }
}

// EXPECT_FLOAT_EQ takes 0 for -0, and infinity for a number near the largest.
TEST(Unary, KeepsMinusZeroAndTinyNumbers) {
  const std::vector<float> x = {-0.0f, 1e-30f, -1e-38f, 1e-45f, -1e-45f};
  std::vector<float> many;
  for (int copy = 0; copy < 19; ++copy) many.insert(many.end(), x.begin(), x.end());
  for (const int64_t set : harness::InstructionSets()) {
    const harness::InstructionSetLimit limit(set);
    SCOPED_TRACE(harness::InstructionSetName(set));
    for (const char* type : {"expm1", "log1p"}) {
      const std::vector<float> found = RunUnary(type, many);
      EXPECT_EQ(found, many) << type;
      EXPECT_TRUE(std::signbit(found[0])) << type;
    }
    EXPECT_TRUE(std::signbit(RunUnary("erf", many)[0]));
  }
}

TEST(Expm1, OverflowsWhereTheResultHasNoFloat) {
  const float last = 88.72283f;  // the largest with a finite exponential
  const float next = std::nextafter(last, 100.0f);
  for (const int64_t set : harness::InstructionSets()) {
    const harness::InstructionSetLimit limit(set);
    SCOPED_TRACE(harness::InstructionSetName(set));
    std::vector<float> x(19, last);
    x.insert(x.end(), 19, next);
    const std::vector<float> found = RunUnary("expm1", x);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(std::isinf(found[i]), x[i] == next) << x[i];
  }
}

TEST(Log1p, IsMinusInfinityAtMinusOne) {
  const float above = std::nextafter(-1.0f, 0.0f);
  ExpectUnary("log1p", {-1.0f, std::nextafter(-1.0f, -2.0f), above},
              {-kInfinity, kNan, std::log1p(above)});
}

TEST(Round, IsExactAtHalvesAndBeyondTheLastFraction) {
  const float below_half = std::nextafter(0.5f, 0.0f);
  ExpectUnary("round", {0.5f, -0.5f, below_half, -below_half, 2.5f, -2.5f, 8388607.0f, 8388609.0f},
              {1, -1, 0, 0, 3, -3, 8388607.0f, 8388609.0f});
}

TEST(Gelu, KeepsItsDigitsInTheLowerTail) {
  // X * P(X), the latter in float64.
  for (const float x : {-3.0f, -6.0f, -9.0f, -12.0f}) {
    const double expected = x / 2.0 * std::erfc(-x / std::sqrt(2.0));
    const float found = RunUnary("gelu", std::vector<float>(16, x))[0];
    EXPECT_NEAR(found / expected, 1, 2e-5) << x;
  }
}

TEST(Gelu, ApproximationHasASlopeFarFromZero) {
  Op op("gelu_grad");
  op.SetInput("X", {"x"}).SetInput("Out@GRAD", {"dout"}).SetOutput("X@GRAD", {"dx"});
  op.SetAttr("approximate", true);
  const harness::NamedTensors inputs = {{"x", Tensor::FromValues<float>({2}, {1e20f, -1e20f})},
                                        {"dout", Tensor::FromValues<float>({2}, {1, 1})}};
  EXPECT_EQ(RunOp(op, inputs).at("dx").ToVector<float>(), (std::vector<float>{1, 0}));
}

TEST(Abs, OfTheLowestIntegerWrapsAround) {
  constexpr int32_t kLowest = std::numeric_limits<int32_t>::lowest();
  Op op("abs");
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"});
  const harness::NamedTensors inputs = {{"x", Tensor::FromValues<int32_t>({1}, {kLowest})}};
  EXPECT_EQ(RunOp(op, inputs).at("out").Item<int32_t>(), kLowest);
}

TEST(Attributes, OutOfRangeAreAnError) {
  const auto message = [](const char* type, const char* attr, float value) {
    Op op(type);
    op.SetInput("X", {"x"}).SetOutput("Out", {"out"}).SetAttr(attr, value);
    return MessageOf(op, {{"x", Tensor({3}, DType::kFloat32)}});
  };
  EXPECT_THAT(message("selu", "scale", 0.0f), HasSubstr("scale = 0.0, expected more than 0"));
  EXPECT_THAT(message("selu", "alpha", -1.0f), HasSubstr("alpha = -1.0, expected at least 0"));
  EXPECT_THAT(message("hard_swish", "scale", 0.0f), HasSubstr("scale = 0.0, expected more than 0"));
  EXPECT_THAT(message("hard_swish", "threshold", 0.0f), HasSubstr("expected more than 0"));
  EXPECT_THAT(message("softplus", "beta", 0.0f),
              HasSubstr("beta = 0.0, expected a number other than 0"));
}

TEST(Division, OfIntegersByZeroIsAnError) {
  const harness::NamedTensors inputs = {{"x", Tensor::FromValues<int32_t>({2, 2}, {1, 2, 3, 4})},
                                        {"y", Tensor::FromValues<int32_t>({2}, {5, 0})}};
  const std::string what = ": Y[1] (in storage order) is 0, expected nonzero divisors for integers";
  EXPECT_EQ(MessageOf(BinaryOp("elementwise_div"), inputs), "elementwise_div" + what);
  EXPECT_EQ(MessageOf(BinaryOp("elementwise_mod"), inputs), "elementwise_mod" + what);
  EXPECT_EQ(MessageOf(BinaryOp("elementwise_floordiv"), inputs), "elementwise_floordiv" + what);
}

TEST(Division, OfTheLowestIntegerByMinusOneWrapsAround) {
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::lowest();
  const harness::NamedTensors inputs = {{"x", Tensor::FromValues<int64_t>({1}, {kLowest})},
                                        {"y", Tensor::FromValues<int64_t>({1}, {-1})}};
  EXPECT_EQ(RunOp(BinaryOp("elementwise_div"), inputs).at("out").Item<int64_t>(), kLowest);
  EXPECT_EQ(RunOp(BinaryOp("elementwise_mod"), inputs).at("out").Item<int64_t>(), 0);
  EXPECT_EQ(RunOp(BinaryOp("elementwise_floordiv"), inputs).at("out").Item<int64_t>(), kLowest);
}

TEST(Division, OfFloatsByZeroRoundedDownIsInfiniteOrNan) {
  const harness::NamedTensors inputs = {{"x", Tensor::FromValues<float>({3}, {1, -1, 0})},
                                        {"y", Tensor::FromValues<float>({1}, {0})}};
  const std::vector<float> found =
      RunOp(BinaryOp("elementwise_floordiv"), inputs).at("out").ToVector<float>();
  EXPECT_EQ(found[0], kInfinity);
  EXPECT_EQ(found[1], -kInfinity);
  EXPECT_TRUE(std::isnan(found[2]));
}

TEST(Pow, GradientIsFiniteAtZero) {
  Op op("elementwise_pow_grad");
  op.SetInput("X", {"x"}).SetInput("Y", {"y"}).SetInput("Out@GRAD", {"dout"});
  op.SetOutput("X@GRAD", {"dx"}).SetOutput("Y@GRAD", {"dy"});
  const harness::NamedTensors found = RunOp(op, {{"x", Tensor::FromValues<float>({2}, {0, 0})},
                                                 {"y", Tensor::FromValues<float>({2}, {2, 0})},
                                                 {"dout", Tensor::FromValues<float>({2}, {1, 1})}});
  EXPECT_EQ(found.at("dx").ToVector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(found.at("dy").ToVector<float>(), (std::vector<float>{0, 0}));
}

TEST(Pow, GradientOfTheExponentIsTheLimitAtInfinity) {
  Op op("elementwise_pow_grad");
  op.SetInput("X", {"x"}).SetInput("Y", {"y"}).SetInput("Out@GRAD", {"dout"});
  op.SetOutput("Y@GRAD", {"dy"});
  const harness::NamedTensors found =
      RunOp(op, {{"x", Tensor::FromValues<float>({4}, {kInfinity, kInfinity, 0, kNan})},
                 {"y", Tensor::FromValues<float>({4}, {-1, 1, -1, -1})},
                 {"dout", Tensor::FromValues<float>({4}, {1, 1, 1, 1})}});
  const std::vector<float> dy = found.at("dy").ToVector<float>();
  EXPECT_EQ(dy[0], 0);
  EXPECT_EQ(dy[1], kInfinity);
  EXPECT_EQ(dy[2], -kInfinity);
  EXPECT_TRUE(std::isnan(dy[3]));
}

TEST(Pow, TakesNoNegativeFactorForIntegersAndNoFactorOfSeveralElements) {
  Op op("pow");
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"}).SetAttr("factor", -1.0f);
  const Tensor x = Tensor::FromValues<int32_t>({2}, {1, 2});
  EXPECT_EQ(MessageOf(op, {{"x", x}}),
            "pow: factor = -1, expected a nonnegative factor for integers");
  op.SetInput("FactorTensor", {"factor"});
  EXPECT_EQ(MessageOf(op, {{"x", x}, {"factor", Tensor({2}, DType::kFloat32)}}),
            "pow: FactorTensor has shape [2], expected one element");
  EXPECT_EQ(MessageOf(op, {{"x", x}, {"factor", Tensor({1}, DType::kBool)}}),
            "pow: FactorTensor is bool, expected float32, float64, int32 or int64");
}

TEST(Pow, GradientIsZeroWhereTheFactorIs) {
  Op op("pow_grad");
  op.SetInput("X", {"x"}).SetInput("Out@GRAD", {"dout"}).SetOutput("X@GRAD", {"dx"});
  op.SetAttr("factor", 0.0f);
  const Tensor x = Tensor::FromValues<float>({2}, {0, 3});
  EXPECT_EQ(RunOp(op, {{"x", x}, {"dout", x}}).at("dx").ToVector<float>(),
            (std::vector<float>{0, 0}));
}

TEST(Where, WantsOneShapeAndABoolCondition) {
  Op op("where");
  op.SetInput("Condition", {"c"}).SetInput("X", {"x"}).SetInput("Y", {"y"});
  op.SetOutput("Out", {"out"});
  const Tensor x({1, 3}, DType::kFloat32);
  const Tensor condition({1, 3}, DType::kBool);
  EXPECT_EQ(MessageOf(op, {{"c", Tensor({3}, DType::kBool)}, {"x", x}, {"y", x}}),
            "where: X is float32 [1, 3], expected float32 [3]");
  EXPECT_EQ(MessageOf(op, {{"c", condition}, {"x", x}, {"y", Tensor({1, 1}, DType::kFloat32)}}),
            "where: Y is float32 [1, 1], expected float32 [1, 3]");
  EXPECT_EQ(MessageOf(op, {{"c", condition}, {"x", x}, {"y", Tensor({1, 3}, DType::kInt32)}}),
            "where: Y is int32 [1, 3], expected float32 [1, 3]");
  EXPECT_EQ(MessageOf(op, {{"c", x}, {"x", x}, {"y", x}}),
            "where: Condition is float32, expected bool");
}

TEST(Prelu, WantsAnAlphaOfItsMode) {
  const auto message = [](const char* mode, const Shape& x, const Shape& alpha) {
    Op op("prelu");
    op.SetInput("X", {"x"}).SetInput("Alpha", {"alpha"}).SetOutput("Out", {"out"});
    op.SetAttr("mode", std::string(mode));
    return MessageOf(
        op, {{"x", Tensor(x, DType::kFloat32)}, {"alpha", Tensor(alpha, DType::kFloat32)}});
  };
  EXPECT_EQ(message("all", {2, 3}, {3}),
            "prelu: Alpha has shape [3], expected one element for X [2, 3] in mode all");
  EXPECT_EQ(message("channel", {2, 3, 4}, {4}),
            "prelu: Alpha has shape [4], expected 3 elements for X [2, 3, 4] in mode channel");
  EXPECT_EQ(message("channel", {3}, {3}),
            "prelu: X has shape [3], expected at least 2 dims in mode channel");
  EXPECT_EQ(message("element", {2, 3}, {3}),
            "prelu: Alpha has shape [3], expected [1, 3] for X [2, 3] in mode element");
  EXPECT_EQ(message("element", {2, 3}, {2, 3}),
            "prelu: Alpha has shape [2, 3], expected [1, 3] for X [2, 3] in mode element");
  EXPECT_THAT(message("row", {2, 3}, {3}),
              HasSubstr("mode = \"row\", expected \"all\", \"channel\" or \"element\""));
}

TEST(Operands, OfOtherShapesOrDtypesAreAnError) {
  Op op = BinaryOp("elementwise_add");
  const Tensor x({2, 3, 4}, DType::kFloat32);
  EXPECT_EQ(MessageOf(op, {{"x", x}, {"y", Tensor({3}, DType::kFloat32)}}),
            "elementwise_add: shapes X [2, 3, 4] and Y [3] don't broadcast at axis = -1: 4 against "
            "3, expected equal dims or a 1");
  EXPECT_EQ(MessageOf(op, {{"x", x}, {"y", Tensor({4}, DType::kFloat64)}}),
            "elementwise_add: X is float32 and Y float64, expected one dtype");
  op.SetAttr("axis", int32_t{3});
  EXPECT_EQ(MessageOf(op, {{"x", x}, {"y", Tensor({4}, DType::kFloat32)}}),
            "elementwise_add: axis = 3 puts shape [4] outside of [2, 3, 4]: expected an axis in "
            "[0, 2] or -1");
}

TEST(Clip, WithMinAboveMaxIsAnError) {
  Op op("clip");
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"}).SetAttr("min", 2.0f).SetAttr("max", 1.0f);
  const Tensor x({3}, DType::kFloat32);
  EXPECT_EQ(MessageOf(op, {{"x", x}}), "clip: min = 2 and max = 1, expected min <= max");
  // Before anything runs.
  Program program;
  program.root()->CreateVar({.name = "x", .dims = {3}});
  EXPECT_THAT(InvalidArgumentText([&] { InferOp(Registry(), program.root(), &op); }),
              HasSubstr("clip: min = 2 and max = 1, expected min <= max"));
}

TEST(Cast, OfAnotherDtypeThanInDtypeIsAnError) {
  Op op("cast");
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"});
  op.SetAttr("in_dtype", int32_t{6}).SetAttr("out_dtype", int32_t{2});
  EXPECT_EQ(MessageOf(op, {{"x", Tensor({3}, DType::kFloat32)}}),
            "cast: X is float32, expected in_dtype = float64");
}

TEST(Increment, OfSeveralElementsIsAnError) {
  Op op("increment");
  op.SetInput("X", {"x"}).SetOutput("Out", {"out"});
  EXPECT_EQ(MessageOf(op, {{"x", Tensor({3}, DType::kFloat32)}}),
            "increment: X has shape [3], expected one element");
}

TEST(BroadcastShape, KeepsUnknownDimsUnlessTheOtherOperandSettlesThem) {
  EXPECT_EQ(BroadcastShape({-1, 4}, {4}, -1, "op"), (Shape{-1, 4}));
  EXPECT_EQ(BroadcastShape({-1, 4}, {3, 4}, -1, "op"), (Shape{3, 4}));
  EXPECT_EQ(BroadcastShape({-1, 4}, {1, 4}, -1, "op"), (Shape{-1, 4}));
  EXPECT_EQ(BroadcastShape({-1, 4}, {-1, 1}, -1, "op"), (Shape{-1, 4}));
  EXPECT_EQ(BroadcastShape({2, 3, 4}, {3, 1, 1}, 1, "op"), (Shape{2, 3, 4}));
}

// The gradient of Y, of shape `y`, in an addition to X of shape `x` at `axis`.
std::vector<float> SumOfGradient(const Shape& x, const Shape& y, int32_t axis) {
  Op op("elementwise_add_grad");
  op.SetInput("X", {"x"}).SetInput("Y", {"y"}).SetInput("Out@GRAD", {"dout"});
  op.SetOutput("Y@GRAD", {"dy"}).SetAttr("axis", axis);
  Tensor dout(x, DType::kFloat32);
  for (int64_t i = 0; i < dout.element_count(); ++i) {
    dout.data<float>()[i] = std::sin(static_cast<float>(i));
  }
  return RunOp(op, {{"x", dout}, {"y", Tensor(y, DType::kFloat32)}, {"dout", dout}})
      .at("dy")
      .ToVector<float>();
}

TEST(BroadcastGradient, HasTheSameBitsForAnyNumberOfThreads) {
  struct Case {
    Shape x;
    Shape y;
    int32_t axis;
  };
  const int threads = omp_get_max_threads();
  for (const Case& c : std::vector<Case>{{{400, 300}, {300}, -1},
                                         {{400, 300}, {400}, 0},
                                         {{200000}, {1}, -1},
                                         {{50, 3, 40, 30}, {3}, 1},
                                         {{4, 20, 40, 30}, {20}, 1},
                                         {{40, 9001}, {9001}, -1},
                                         {{200, 2500}, {2500}, -1}}) {
    omp_set_num_threads(1);
    const std::vector<float> one = SumOfGradient(c.x, c.y, c.axis);
    omp_set_num_threads(3);
    EXPECT_EQ(SumOfGradient(c.x, c.y, c.axis), one) << c.x << " " << c.y;
  }
  omp_set_num_threads(threads);
}

// A thread takes several segments of a row at a time: 1,024 numbers each, at most eight.
TEST(BroadcastGradient, IsTheSumOfEachColumnOfWideRows) {
  for (const auto& [rows, columns] :
       std::vector<std::pair<int64_t, int64_t>>{{40, 9001}, {200, 2500}, {3, 20000}}) {
    for (const char* type : {"elementwise_add_grad", "elementwise_mul_grad"}) {
      Op op(type);
      op.SetInput("X", {"x"}).SetInput("Y", {"y"}).SetInput("Out@GRAD", {"dout"});
      op.SetOutput("Y@GRAD", {"dy"}).SetAttr("axis", int32_t{-1});
      const bool multiplies = op.type == "elementwise_mul_grad";
      Tensor x({rows, columns}, DType::kFloat32), dout({rows, columns}, DType::kFloat32);
      std::vector<double> sums(static_cast<size_t>(columns));
      for (int64_t i = 0; i < rows * columns; ++i) {
        x.data<float>()[i] = static_cast<float>(i % 7 - 3);
        dout.data<float>()[i] = static_cast<float>(i % 11 - 5);
        sums[static_cast<size_t>(i % columns)] +=
            static_cast<double>(dout.data<float>()[i]) * (multiplies ? x.data<float>()[i] : 1.0f);
      }
      const Tensor y({columns}, DType::kFloat32);
      EXPECT_EQ(RunOp(op, {{"x", x}, {"y", y}, {"dout", dout}}).at("dy").ToVector<float>(),
                std::vector<float>(sums.begin(), sums.end()))
          << op.type << ", " << rows << " rows of " << columns;
    }
  }
}

}  // namespace
}  // namespace skiff
