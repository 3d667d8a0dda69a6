#include "framework/training/reduce_on_plateau.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tests/harness/temp_directory.h"

namespace skiff::training {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The rate after each value, from 1 on.
std::vector<double> RatesAfter(const std::vector<double>& values, PlateauOptions options) {
  options.variable = "rate";
  ReduceOnPlateau plateau(options);
  Scope scope;
  scope.Set("rate", Tensor::FromValues<double>({1}, {1.0}));
  std::vector<double> rates;
  for (const double value : values) {
    const double before = LearningRateIn(scope, "rate");
    const bool has_reduced = plateau.Add(value, &scope);
    rates.push_back(LearningRateIn(scope, "rate"));
    EXPECT_EQ(has_reduced, rates.back() != before);
  }
  return rates;
}

TEST(ReduceOnPlateau, WaitsForMoreBadValuesThanItsPatience) {
  EXPECT_THAT(RatesAfter({5, 5, 5, 5, 4, 5, 5, 5}, {.factor = 0.5, .patience = 2}),
              ElementsAre(1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25));
  EXPECT_THAT(RatesAfter({5, 5, 4, 4}, {.factor = 0.5, .patience = 0}),
              ElementsAre(1, 0.5, 0.5, 0.25));
}

TEST(ReduceOnPlateau, CountsWhatIsLargerAsBetterIfAsked) {
  EXPECT_THAT(RatesAfter({1, 2, 1, 3}, {.larger_is_better = true, .factor = 0.5, .patience = 0}),
              ElementsAre(1, 1, 0.5, 0.5));
}

TEST(ReduceOnPlateau, HasARelativeOrAnAbsoluteThreshold) {
  // Better than 10 is below 9.
  EXPECT_THAT(RatesAfter({10, 9.5, 8.5}, {.factor = 0.5, .patience = 0, .threshold = 0.1}),
              ElementsAre(1, 0.5, 0.5));
  EXPECT_THAT(RatesAfter({10, 9.5, 8.5},
                         {.factor = 0.5, .patience = 0, .threshold = 0.1, .is_relative = false}),
              ElementsAre(1, 1, 1));
  EXPECT_THAT(
      RatesAfter({10, 10.5, 11.5},
                 {.larger_is_better = true, .factor = 0.5, .patience = 0, .threshold = 0.1}),
      ElementsAre(1, 0.5, 0.5));
}

TEST(ReduceOnPlateau, CoolsDown) {
  EXPECT_THAT(RatesAfter({5, 5, 5, 5, 5, 5}, {.factor = 0.5, .patience = 0, .cooldown = 2}),
              ElementsAre(1, 0.5, 0.5, 0.5, 0.25, 0.25));
}

TEST(ReduceOnPlateau, StopsAtItsSmallestRate) {
  EXPECT_THAT(RatesAfter({5, 5, 5, 5}, {.factor = 0.5, .patience = 0, .min_rate = 0.3}),
              ElementsAre(1, 0.5, 0.3, 0.3));
  EXPECT_THAT(RatesAfter({5, 5, 5}, {.factor = 0.5, .patience = 0, .epsilon = 0.3}),
              ElementsAre(1, 0.5, 0.5));
}

TEST(ReduceOnPlateau, TakesNanAndInfinityForBadValues) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(RatesAfter({kNan, infinity, 5, kNan}, {.factor = 0.5, .patience = 0}),
              ElementsAre(0.5, 0.25, 0.25, 0.125));
}

TEST(ReduceOnPlateau, GoesOnFromASavedState) {
  const PlateauOptions options{.factor = 0.5, .patience = 1, .cooldown = 3, .variable = "rate"};
  const std::vector<double> values = {5, 6, 6, 6, 6, 4, 4.5, 4.5, 4.5, 4.5};
  const std::vector<double> whole = RatesAfter(values, options);
  for (size_t cut = 0; cut < values.size(); ++cut) {
    Scope scope;
    scope.Set("rate", Tensor::FromValues<double>({1}, {1.0}));
    ReduceOnPlateau before(options);
    for (size_t i = 0; i < cut; ++i) before.Add(values[i], &scope);
    ReduceOnPlateau after(options);
    after.Restore(before.State());
    for (size_t i = cut; i < values.size(); ++i) {
      after.Add(values[i], &scope);
      EXPECT_EQ(LearningRateIn(scope, "rate"), whole[i]) << "cut at " << cut << ", value " << i;
    }
  }
  ReduceOnPlateau plateau(options);
  EXPECT_EQ(ErrorOf([&] { plateau.Restore({{"bad", "1"}}); }).code(), ErrorCode::kDataLoss);
}

TEST(ReduceOnPlateau, RefusesOptionsOutOfRange) {
  const auto text = [](const PlateauOptions& options) {
    return std::string(ErrorOf([&] { ReduceOnPlateau plateau(options); }).what());
  };
  EXPECT_THAT(text({.factor = 1}), HasSubstr("factor = 1, expected a number in (0, 1)"));
  EXPECT_THAT(text({.patience = -1}), HasSubstr("patience = -1, expected a number of at least 0"));
  EXPECT_THAT(text({.threshold = kNan}), HasSubstr("threshold = nan, expected a number of at"));
  Scope scope;
  ReduceOnPlateau plateau(PlateauOptions{});
  EXPECT_THAT(ErrorOf([&] { plateau.Add(1, &scope); }).what(),
              HasSubstr("the option variable is empty, expected the learning rate's name"));
}

}  // namespace
}  // namespace skiff::training
