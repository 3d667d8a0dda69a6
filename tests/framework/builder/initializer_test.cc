#include "framework/builder/initializer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/fill_value.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class InitializerTest : public testing::Test {
 protected:
  Variable Parameter(const Initializer& initializer, const std::vector<int64_t>& dims,
                     DType dtype = DType::kFloat32) {
    const LayerCall call("layer", "", std::source_location::current());
    return call.CreateParameter({}, "w", dims, dtype, initializer);
  }

  Tensor ValueOf(const Variable& parameter) {
    Executor exe(Place::Cpu());
    exe.Run(startup_);
    return CopyToCpu(exe.scope().Get(parameter.name()));
  }

  const Op& LastStartupOp() const { return *startup_.root()->ops().back(); }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
};

TEST_F(InitializerTest, ConstantFills) {
  const Variable w = Parameter(initializer::Constant(2.5), {2, 3});
  EXPECT_THAT(ValueOf(w).ToVector<float>(), Each(2.5f));
}

TEST_F(InitializerTest, FromArrayKeepsValuesAndDtype) {
  const Variable a = Parameter(initializer::FromArray(std::vector<float>{1, 2, 3, 4}), {2, 2});
  EXPECT_THAT(ValueOf(a).ToVector<float>(), ElementsAre(1, 2, 3, 4));
  const Variable b =
      Parameter(initializer::FromArray(std::vector<double>{0.1, 0.2}), {2}, DType::kFloat64);
  EXPECT_THAT(ValueOf(b).ToVector<double>(), ElementsAre(0.1, 0.2));
  const Variable c =
      Parameter(initializer::FromArray(std::vector<int64_t>{int64_t{1} << 40}), {1}, DType::kInt64);
  EXPECT_EQ(ValueOf(c).Item<int64_t>(), int64_t{1} << 40);
}

TEST_F(InitializerTest, TwoByteNumbersAreRoundedFloats) {
  const auto bits_of = [&](DType dtype) {
    const std::vector<float> values = {1.0f, 1.0f + 0x3p-9f, -1.0f - 0x1p-8f};
    const Tensor found = ValueOf(Parameter(initializer::FromArray(values), {3}, dtype));
    EXPECT_EQ(found.dtype(), dtype);
    const auto* bits = static_cast<const uint16_t*>(found.raw_data());
    return std::vector<int>(bits, bits + 3);
  };
  EXPECT_THAT(bits_of(DType::kBFloat16), ElementsAre(0x3f80, 0x3f81, 0xbf80));
  EXPECT_THAT(bits_of(DType::kFloat16), ElementsAre(0x3c00, 0x3c06, 0xbc04));
}

TEST_F(InitializerTest, FromArrayChecksCountAndDtype) {
  const Initializer three = initializer::FromArray(std::vector<float>{1, 2, 3});
  EXPECT_THAT(InvalidArgumentText([&] { Parameter(three, {2}); }),
              HasSubstr(": layer: initializer of \"layer_0.w_0\": 3 values, expected 2"));
  EXPECT_THAT(InvalidArgumentText([&] { Parameter(three, {3}, DType::kFloat64); }),
              HasSubstr(": values of float32, expected float64"));
}

TEST_F(InitializerTest, UniformStaysInItsRange) {
  const Variable w = Parameter(initializer::Uniform({.low = 0.5f, .high = 1.5f}), {1000});
  for (const float value : ValueOf(w).ToVector<float>()) {
    EXPECT_GE(value, 0.5f);
    EXPECT_LE(value, 1.5f);
  }
  EXPECT_EQ(InvalidArgumentText([] { initializer::Uniform({.low = 1.0f, .high = 0.0f}); }),
            "uniform initializer: low = 1 is above high = 0");
}

TEST_F(InitializerTest, NormalHasItsMoments) {
  const Variable w = Parameter(initializer::Normal({.mean = 3.0f, .stddev = 0.5f}), {10000});
  const std::vector<float> values = ValueOf(w).ToVector<float>();
  double mean = 0.0;
  double square = 0.0;
  for (const float value : values) mean += value / 10000.0;
  for (const float value : values) square += (value - mean) * (value - mean) / 10000.0;
  EXPECT_NEAR(mean, 3.0, 0.05);
  EXPECT_NEAR(std::sqrt(square), 0.5, 0.03);
  EXPECT_EQ(InvalidArgumentText([] { initializer::Normal({.stddev = -1.0f}); }),
            "gaussian_random: the standard deviation is -1, expected none below 0");
}

TEST_F(InitializerTest, TruncatedNormalStaysWithinTwoDeviations) {
  const Variable w = Parameter(initializer::TruncatedNormal({.stddev = 0.02f}), {1000});
  for (const float value : ValueOf(w).ToVector<float>()) EXPECT_LE(std::abs(value), 0.04001f);
}

// Fluid has 32 bits for the shape of some of these ops, 64 bits for that of others.
TEST_F(InitializerTest, AShapeHasTheBitsThatItsOpDeclares) {
  Parameter(initializer::TruncatedNormal(), {4, 5});
  EXPECT_THAT(LastStartupOp().Attr<std::vector<int32_t>>("shape"), ElementsAre(4, 5));
  Parameter(initializer::Normal(), {4, 5});
  EXPECT_THAT(LastStartupOp().Attr<std::vector<int64_t>>("shape"), ElementsAre(4, 5));
}

TEST_F(InitializerTest, XavierAndMsraTakeTheFansOfTheShape) {
  const auto limit = [&] { return LastStartupOp().Attr<float>("max"); };
  Parameter(initializer::Xavier(), {30, 20});
  EXPECT_FLOAT_EQ(limit(), std::sqrt(6.0f / 50.0f));
  Parameter(initializer::Xavier(), {8, 4, 3, 3});  // fan-in 36, fan-out 72
  EXPECT_FLOAT_EQ(limit(), std::sqrt(6.0f / 108.0f));
  Parameter(initializer::Msra(), {30, 20});
  EXPECT_FLOAT_EQ(limit(), std::sqrt(6.0f / 30.0f));
  Parameter(initializer::Xavier({.uniform = false}), {30, 20});
  EXPECT_FLOAT_EQ(LastStartupOp().Attr<float>("std"), std::sqrt(2.0f / 50.0f));
  Parameter(initializer::Msra({.uniform = false, .fan_in = 50, .seed = 7}), {30, 20});
  EXPECT_FLOAT_EQ(LastStartupOp().Attr<float>("std"), 0.2f);
  EXPECT_EQ(LastStartupOp().Attr<int32_t>("seed"), 7);
}

// Fluid's attribute `value` is a float; `str_value` holds what that would lose.
TEST(FillValue, KeepsWhatAFloatLoses) {
  Op op("fill_constant");
  SetFillValue(&op, DType::kFloat32, 0.1);
  EXPECT_FALSE(op.HasAttr("str_value"));
  SetFillValue(&op, DType::kFloat64, 0.1);
  EXPECT_EQ(op.Attr<std::string>("str_value"), "0.1");
  SetFillValue(&op, DType::kInt64, 16777217);
  EXPECT_EQ(op.Attr<std::string>("str_value"), "16777217");
}

}  // namespace
}  // namespace skiff
