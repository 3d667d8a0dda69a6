// Parameters of float16 and bfloat16 that are trained through float32 master weights
// (multi_precision): the bits of a loop written here, names, errors, checkpoints, gradient_merge,
// averages. All optimizers with the passes on and off: optimizer_passes_test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/op_def.h"
#include "skiff/skiff.h"
#include "tests/harness/temp_directory.h"
#include "tests/skiff/net_training.h"

namespace skiff {
namespace {

using optimizer::MinimizeOptions;
using optimizer::Optimizer;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Passes that run only when asked for.
const std::vector<std::string> kNone = {};
const std::vector<std::string> kFlat = {"fuse_optimizer", "flatten_parameters"};

constexpr int64_t kSize = 21;  // fills no vector
constexpr float kRate = 0x1p-6f;
constexpr const char* kMaster = "w_fp32_master_0";

std::vector<float> FirstWeights() {
  std::vector<float> weights;
  for (int64_t i = 0; i < kSize; ++i)
    weights.push_back(static_cast<float>(std::sin(1.0 + 2.1 * i)));
  return weights;
}

// loss = Σ (w - target)² + Σ (v - target)², w of `dtype` and v of float32. Of the last step too,
// the gradient of w is 2 (w - target) without any rounding but that to its dtype.
std::unique_ptr<Net> MakeNet(DType dtype, const Optimizer& optimizer,
                             const MinimizeOptions& options = {}) {
  auto net = std::make_unique<Net>();
  const ProgramGuard guard(&net->main, &net->startup);
  const Variable target = layers::Data("target", {kSize});
  const auto distance = [&](const std::string& name, DType of_parameter) {
    const Variable parameter = layers::CreateParameter(
        {kSize}, of_parameter,
        {.name = name, .initializer = initializer::FromArray(FirstWeights())});
    const bool is_wide = of_parameter == DType::kFloat32;
    const Variable wide = is_wide ? parameter : layers::Cast(parameter, DType::kFloat32);
    return layers::ReduceSum(layers::Square(wide - target));
  };
  const Variable loss = distance("w", dtype) + distance("v", DType::kFloat32);
  optimizer.Minimize(loss, options);
  net->loss = loss.name();
  return net;
}

// Numbers that a two-byte one is subtracted from without rounding.
std::vector<float> TargetOf(int step) {
  std::vector<float> target;
  for (int64_t i = 0; i < kSize; ++i) {
    target.push_back(static_cast<float>(std::round(24 * std::cos(0.7 * i + 0.1 * step)) / 16));
  }
  return target;
}

FeedList FeedOf(int step) {
  return {{"target", Tensor::FromValues<float>({kSize}, TargetOf(step))}};
}

class Training : public NetTraining {
 public:
  using NetTraining::NetTraining;

  void Steps(int first, int count) {
    for (int step = first; step < first + count; ++step) Run(FeedOf(step));
  }
  // Of two-byte numbers.
  std::vector<uint16_t> Bits(const std::string& name) {
    const Tensor& tensor = scope().Get(name);
    const auto* bits = static_cast<const uint16_t*>(tensor.raw_data());
    return {bits, bits + tensor.element_count()};
  }
};

// The nearest number of so many significant bits, the even one of two. Of normal numbers.
float Rounded(double value, int bits) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return static_cast<float>(
      std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits));
}

struct Precision {
  DType dtype;
  int bits;

  float Round(double value) const { return Rounded(value, bits); }
  uint16_t Bits(float value) const {
    Tensor wide = Tensor::FromValues<float>({1}, {value});
    uint32_t word = 0;
    std::memcpy(&word, wide.raw_data(), sizeof(word));
    if (dtype == DType::kBFloat16) return static_cast<uint16_t>(word >> 16);
    int exponent = 0;
    const double fraction = std::abs(std::frexp(value, &exponent));
    const int sign = std::signbit(value) ? 0x8000 : 0;
    return static_cast<uint16_t>(sign | (exponent + 14) << 10 |
                                 static_cast<int>(std::ldexp(fraction, 11)) % 1024);
  }
};

class MasterWeights : public testing::TestWithParam<Precision> {};

// Momentum with factors that are powers of two: each step of the loop rounds where the op does,
// whether products are rounded before sums or not.
TEST_P(MasterWeights, HaveTheBitsOfALoop) {
  const Precision precision = GetParam();
  constexpr float kDecay = 0x1p-4f;
  for (const bool decays : {false, true}) {
    const Regularizer regularizer = decays ? L2Decay(kDecay) : Regularizer();
    const optimizer::Momentum momentum({.learning_rate = kRate,
                                        .momentum = 0.5f,
                                        .regularization = regularizer,
                                        .multi_precision = true});
    const std::unique_ptr<Net> net = MakeNet(precision.dtype, momentum);
    Training training(*net);
    // The master weights begin with what the parameter was rounded to.
    std::vector<float> weights;
    for (const float value : FirstWeights()) weights.push_back(precision.Round(value));
    std::vector<float> velocities(kSize, 0.0f);
    EXPECT_EQ(training.Floats(kMaster), weights);
    for (int step = 0; step < 200; ++step) {
      const std::vector<float> target = TargetOf(step);
      for (size_t i = 0; i < kSize; ++i) {
        const float gradient = precision.Round(2 * (precision.Round(weights[i]) - target[i]));
        const float decayed = decays ? gradient + kDecay * weights[i] : gradient;
        velocities[i] = 0.5f * velocities[i] + decayed;
        weights[i] -= kRate * velocities[i];
      }
      training.Run(FeedOf(step));
    }
    EXPECT_EQ(training.Floats(kMaster), weights);
    std::vector<uint16_t> rounded;
    for (const float weight : weights) rounded.push_back(precision.Bits(precision.Round(weight)));
    EXPECT_EQ(training.Bits("w"), rounded);
  }
}

TEST_P(MasterWeights, GoOnFromACheckpoint) {
  const std::unique_ptr<Net> net =
      MakeNet(GetParam().dtype, optimizer::Adam({.learning_rate = 0.01, .multi_precision = true}));
  EXPECT_THAT(PersistableNames(net->main), Contains(kMaster));
  Training uninterrupted(*net);
  uninterrupted.Steps(0, 6);
  const TempDirectory directory;
  Training before(*net);
  before.Steps(0, 3);
  SaveCheckpoint(directory.path(), net->main, before.scope(), 3, {});
  Training after(*net, {.passes = {.also = kFlat}});
  LoadLatestCheckpoint(directory.path(), net->main, &after.scope());
  after.Steps(3, 3);
  EXPECT_EQ(after.Hash(), uninterrupted.Hash());
}

INSTANTIATE_TEST_SUITE_P(DTypes, MasterWeights,
                         testing::Values(Precision{DType::kBFloat16, 8},
                                         Precision{DType::kFloat16, 11}),
                         [](const auto& info) { return std::string(DTypeName(info.param.dtype)); });

std::vector<std::string> OptimizeOps(const Net& net) {
  std::vector<std::string> types;
  for (const auto& op : net.main.root()->ops()) {
    if (op->Attr<int32_t>("op_role", 0) == 2) types.push_back(op->type);
  }
  return types;
}

TEST(MasterWeightsOfAProgram, HaveFluidsNames) {
  const std::unique_ptr<Net> net =
      MakeNet(DType::kBFloat16, optimizer::Adam({.multi_precision = true}));
  for (const Program* program : {&net->main, &net->startup}) {
    for (const std::string& name :
         {std::string(kMaster), StrCat(kMaster, "_moment1_0"), StrCat(kMaster, "_moment2_0"),
          StrCat(kMaster, "_beta1_pow_acc_0"), std::string("v_moment1_0")}) {
      const Var* var = program->root()->FindLocalVar(name);
      ASSERT_NE(var, nullptr) << name;
      EXPECT_EQ(var->dtype, DType::kFloat32) << name;
      EXPECT_TRUE(var->persistable) << name;
    }
    EXPECT_EQ(program->root()->FindLocalVar("v_fp32_master_0"), nullptr);
  }
  EXPECT_FALSE(net->main.root()->GetVar(kMaster)->is_parameter);
}

TEST(MasterWeightsOfAProgram, CastGradientsOnlyForOpsThatReadThem) {
  const auto ops = [](const GradientClip& clip, const MinimizeOptions& options) {
    return OptimizeOps(*MakeNet(DType::kBFloat16,
                                optimizer::Sgd({.clip = clip, .multi_precision = true}), options));
  };
  EXPECT_THAT(ops({}, {}), ElementsAre("sgd", "sgd"));
  EXPECT_THAT(ops(ClipByValue(1.0f), {}), ElementsAre("cast", "clip", "clip", "sgd", "sgd"));
  EXPECT_THAT(ops({}, {.skip_non_finite = true}), Contains("cast"));
  EXPECT_THAT(ops({}, {.gradient_merge = {.steps = 2}}), Not(Contains("cast")));
}

TEST(MasterWeightsOfAProgram, AreAskedFor) {
  try {
    MakeNet(DType::kFloat16, optimizer::Sgd());
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("parameter \"w\" is float16; set the optimizer's option "
                                        "multi_precision = true"));
  }
}

TEST(MasterWeightsOfAProgram, AddUpGradientsOfSmallBatches) {
  const std::unique_ptr<Net> net =
      MakeNet(DType::kBFloat16, optimizer::Sgd({.learning_rate = kRate, .multi_precision = true}),
              {.gradient_merge = {.steps = 2, .mean = false}});
  for (const bool fused : {false, true}) {
    Training training(*net, {.passes = {.also = fused ? kFlat : kNone}});
    std::vector<float> weights = training.Floats(kMaster);
    for (int round = 0; round < 5; ++round) {
      training.Run(FeedOf(2 * round));
      EXPECT_EQ(training.Floats(kMaster), weights);
      training.Run(FeedOf(2 * round + 1));
      const std::vector<float> first = TargetOf(2 * round);
      const std::vector<float> second = TargetOf(2 * round + 1);
      for (size_t i = 0; i < kSize; ++i) {
        const float weight = Rounded(weights[i], 8);
        weights[i] -=
            kRate * (Rounded(2 * (weight - first[i]), 8) + Rounded(2 * (weight - second[i]), 8));
      }
      EXPECT_EQ(training.Floats(kMaster), weights);
    }
  }
}

TEST(MasterWeightsOfAProgram, StayWhereAGradientIsBroken) {
  const std::unique_ptr<Net> net = MakeNet(
      DType::kBFloat16, optimizer::Adam({.multi_precision = true}), {.skip_non_finite = true});
  Training training(*net);
  training.Steps(0, 2);
  const std::vector<float> weights = training.Floats(kMaster);
  const std::vector<uint16_t> rounded = training.Bits("w");
  std::vector<float> broken = TargetOf(2);
  broken[5] = std::numeric_limits<float>::quiet_NaN();
  training.Run({{"target", Tensor::FromValues<float>({kSize}, broken)}});
  EXPECT_EQ(training.Floats(kMaster), weights);
  EXPECT_EQ(training.Bits("w"), rounded);
  EXPECT_EQ(training.scope().Get(kSkippedUpdates).Item<int64_t>(), 1);
}

// Both averages are of the master weights; what takes the parameter's place is rounded once.
TEST(MasterWeightsOfAProgram, AreWhatIsAveraged) {
  constexpr int kSteps = 7;
  constexpr float kKept = 0.75f;
  for (const bool is_moving : {false, true}) {
    auto net = MakeNet(DType::kBFloat16,
                       optimizer::Sgd({.learning_rate = kRate, .multi_precision = true}));
    std::unique_ptr<optimizer::ParameterAverage> average;
    {
      const ProgramGuard guard(&net->main, &net->startup);
      if (is_moving) {
        average = std::make_unique<optimizer::ExponentialMovingAverage>(
            optimizer::ExponentialMovingAverageOptions{.decay = kKept});
      } else {
        average = std::make_unique<optimizer::ModelAverage>();
      }
    }
    EXPECT_THAT(average->variables(), ElementsAre("v", "w"));
    Training training(*net);
    std::vector<double> sums(kSize, 0.0);
    double count = 0;
    for (int step = 0; step < kSteps; ++step) {
      training.Run(FeedOf(step));
      const std::vector<float> weights = training.Floats(kMaster);
      const double old = is_moving ? kKept : 1.0;
      const double share = is_moving ? 1.0 - kKept : 1.0;
      for (size_t i = 0; i < kSize; ++i) sums[i] = old * sums[i] + share * weights[i];
      count = old * count + share;
    }
    const std::vector<float> state = training.Floats(is_moving ? "w_ema_0" : "w_sum_1_0");
    for (size_t i = 0; i < kSize; ++i) EXPECT_NEAR(state[i], sums[i], 1e-5) << i;
    const std::vector<uint16_t> raw = training.Bits("w");
    const std::vector<float> weights = training.Floats(kMaster);
    {
      const ReplacedValues replaced = training::ApplyAverage(*average, &training.executor());
      const std::vector<uint16_t> applied = training.Bits("w");
      for (size_t i = 0; i < kSize; ++i) {
        float found = 0;
        const uint32_t word = uint32_t{applied[i]} << 16;
        std::memcpy(&found, &word, sizeof(found));
        EXPECT_NEAR(found, sums[i] / count, 0x1p-8 * std::abs(found)) << i;
        EXPECT_NEAR(training.Floats(kMaster)[i], sums[i] / count, 1e-5) << i;
      }
    }
    EXPECT_EQ(training.Bits("w"), raw);
    EXPECT_EQ(training.Floats(kMaster), weights);
  }
}

}  // namespace
}  // namespace skiff
