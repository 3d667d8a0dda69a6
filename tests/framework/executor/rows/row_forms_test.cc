// Finds forms of rows from probes, and evaluates forms. Forms are compared as texts.
#include "framework/executor/rows/row_forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/str_cat.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// (2 count0 + -1 count1 + 3) / 1, at most 19
std::string TextOf(const RowForm& form) {
  std::string text = "(";
  for (const RowForm::Term& term : form.terms) {
    text += StrCat(term.factor, " count", term.count, " + ");
  }
  return text + StrCat(form.constant, ") / ", form.divisor, ", at most ", form.capacity);
}

std::vector<std::string> Multiples(const CountProbes& probes, const std::vector<int64_t>& rows) {
  std::vector<std::string> texts;
  for (const RowForm& form : MultiplesOfCounts(probes, rows, 0, probes.counts[0].size())) {
    texts.push_back(TextOf(form));
  }
  return texts;
}

std::string Sum(const CountProbes& probes, const std::vector<int64_t>& rows) {
  const std::optional<RowForm> form = SumOfClasses(probes, rows);
  return form ? TextOf(*form) : "none";
}

// One class, in the plan and in runs with 7 and 5.
const CountProbes kOneClass = {.counts = {{8}, {8}, {7}, {5}}, .classes = 1};
// Two classes, whose counts are the plan's but for one of them.
const CountProbes kTwoClasses = {.counts = {{8, 16}, {8, 16}, {7, 16}, {8, 15}}, .classes = 2};

TEST(RowForm, IsAnAffineFunctionOfTheCounts) {
  const RowForm form{.terms = {{.count = 0, .factor = 2}, {.count = 2, .factor = -3}},
                     .constant = 5};
  EXPECT_THAT(form.Evaluate({10, 100, 4}), Optional(13));
  EXPECT_THAT(form.Evaluate({0, 0, 0}), Optional(5));
}

TEST(RowForm, HasNoRowsIfTheyWouldBeNoWholeNumber) {
  const RowForm form{.terms = {{.count = 0, .factor = 3}}, .constant = 2, .divisor = 4};
  EXPECT_THAT(form.Evaluate({2}), Optional(2));
  EXPECT_EQ(form.Evaluate({3}), std::nullopt);
}

TEST(RowForm, HasNoRowsIfTheSumOverflows) {
  const RowForm product{.terms = {{.count = 0, .factor = kMost / 2}}};
  EXPECT_THAT(product.Evaluate({2}), Optional(kMost - 1));
  EXPECT_EQ(product.Evaluate({3}), std::nullopt);
  const RowForm sum{.terms = {{.count = 0, .factor = 1}}, .constant = kMost - 1};
  EXPECT_THAT(sum.Evaluate({1}), Optional(kMost));
  EXPECT_EQ(sum.Evaluate({2}), std::nullopt);
}

TEST(RowForm, IsKnownIfAllItsCountsAre) {
  const RowForm form{.terms = {{.count = 0, .factor = 1}, {.count = 2, .factor = 1}}};
  EXPECT_TRUE(form.IsKnown({0, -1, 4}));
  EXPECT_FALSE(form.IsKnown({0, 4, -1}));
}

TEST(MultiplesOfCounts, FindsTheFactorAndTheConstant) {
  EXPECT_THAT(Multiples(kOneClass, {19, 19, 17, 13}),
              ElementsAre("(2 count0 + 3) / 1, at most 19"));
  EXPECT_THAT(Multiples(kOneClass, {7, 7, 6, 4}), ElementsAre("(1 count0 + -1) / 1, at most 7"));
  EXPECT_THAT(Multiples(kOneClass, {2, 2, 3, 5}), ElementsAre("(-1 count0 + 10) / 1, at most 2"));
}

// A run may have a higher count than the plan: a body's probes have counts of their own.
TEST(MultiplesOfCounts, HasAPositiveDivisorWhicheverCountIsHigher) {
  EXPECT_THAT(Multiples({.counts = {{16}, {16}, {12}}, .classes = 1}, {5, 5, 4}),
              ElementsAre("(1 count0 + 4) / 4, at most 5"));
  EXPECT_THAT(Multiples({.counts = {{12}, {12}, {16}}, .classes = 1}, {4, 4, 5}),
              ElementsAre("(1 count0 + 4) / 4, at most 4"));
}

TEST(MultiplesOfCounts, FindsNothingThatAProbeContradicts) {
  EXPECT_THAT(Multiples(kOneClass, {64, 64, 49, 25}), IsEmpty());
  EXPECT_THAT(Multiples(kOneClass, {19, 20, 17, 13}), IsEmpty());
}

// Probe 1 has other counts of LoD groups than the plan, though the same counts of feeds.
TEST(MultiplesOfCounts, FindsEachCountThatHasTheRows) {
  const CountProbes probes = {.counts = {{8, 3, 20}, {8, 2, 20}, {7, 2, 18}}, .classes = 1};
  EXPECT_THAT(Multiples(probes, {8, 8, 7}),
              ElementsAre("(1 count0 + 0) / 1, at most 8", "(1 count2 + -4) / 2, at most 8"));
  EXPECT_THAT(Multiples(probes, {9, 6, 6}), ElementsAre("(3 count1 + 0) / 1, at most 9"));
  const std::vector<RowForm> found = MultiplesOfCounts(probes, {8, 8, 7}, 1, 3);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(TextOf(found[0]), "(1 count2 + -4) / 2, at most 8");
}

TEST(MultiplesOfCounts, FindsNothingOfACountThatIsTheSameInAllProbes) {
  EXPECT_THAT(Multiples({.counts = {{8}, {8}, {8}}, .classes = 1}, {8, 8, 8}), IsEmpty());
}

TEST(MultiplesOfCounts, FindsNoFormThatOverflows) {
  // The constant would be rows * divisor.
  EXPECT_THAT(Multiples({.counts = {{8}, {8}, {4}}, .classes = 1}, {kMost, kMost, kMost}),
              IsEmpty());
  // The constant would be rows - factor * count.
  constexpr int64_t kLarge = int64_t{1} << 40;
  EXPECT_THAT(
      Multiples({.counts = {{kLarge}, {kLarge}, {kLarge - 1}}, .classes = 1}, {kLarge, kLarge, 0}),
      IsEmpty());
}

TEST(SumOfClasses, FindsAFactorForEachClass) {
  EXPECT_EQ(Sum(kTwoClasses, {65, 65, 63, 62}), "(2 count0 + 3 count1 + 1) / 1, at most 65");
  EXPECT_EQ(Sum(kTwoClasses, {16, 16, 16, 15}), "(1 count1 + 0) / 1, at most 16");
}

TEST(SumOfClasses, KnowsHowTheCountsChangeInTheProbes) {
  const CountProbes probes = {
      .counts = {{8, 16}, {8, 16}, {9, 16}, {8, 17}}, .classes = 2, .change = 1};
  EXPECT_EQ(Sum(probes, {65, 65, 67, 68}), "(2 count0 + 3 count1 + 1) / 1, at most 65");
}

// What a LoD group counts is no count of the feeds.
TEST(SumOfClasses, LooksAtNoCountOfAGroup) {
  const CountProbes probes = {.counts = {{8, 3}, {8, 2}, {7, 2}, {5, 1}}, .classes = 1};
  EXPECT_EQ(Sum(probes, {8, 8, 7, 5}), "(1 count0 + 0) / 1, at most 8");
  EXPECT_EQ(Sum(probes, {3, 2, 2, 1}), "none");
}

TEST(SumOfClasses, FindsNothingThatAProbeContradicts) {
  CountProbes probes = kTwoClasses;
  probes.counts.push_back({4, 4});
  EXPECT_EQ(Sum(probes, {24, 24, 23, 23, 8}), "(1 count0 + 1 count1 + 0) / 1, at most 24");
  // The product of the counts.
  EXPECT_EQ(Sum(probes, {128, 128, 112, 120, 16}), "none");
}

TEST(SumOfClasses, FindsNoSumThatOverflows) {
  constexpr int64_t kLarge = int64_t{1} << 40;
  const CountProbes probes = {.counts = {{kLarge}, {kLarge}, {kLarge - 1}}, .classes = 1};
  EXPECT_EQ(Sum(probes, {kLarge, kLarge, 0}), "none");
}

}  // namespace
}  // namespace skiff
