// Loops of a formula with several inputs and outputs: vectors of each instruction set beside
// numbers.
#include "operators/common/element_formula.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/harness/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/operators/common/element_formula_test.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "operators/common/cpu/element_formula-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

// Sum = X + Y * W, Product = X * Y.
struct SumAndProduct {
  static constexpr std::array kInputs = {"X", "Y", "W"};
  static constexpr std::array kOutputs = {"Sum", "Product"};

  template <class V>
  constexpr std::array<V, 2> operator()(V x, V y, V w) const {
    return {x + y * w, x * y};
  }
};

ElementLoop<float> VectorLoop() { return VectorLoopOf(SumAndProduct()); }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(VectorLoop);

using ::testing::ElementsAreArray;

// Not a multiple of a vector of any instruction set.
constexpr int64_t kCount = 37;

// Small whole numbers, of which sums and products are exact.
std::vector<float> Numbers(float first) {
  std::vector<float> numbers(kCount);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

// The loop of numbers, and those of vectors for each instruction set.
std::vector<ElementLoop<float>> AllLoops() {
  std::vector<ElementLoop<float>> loops = {ScalarLoopOf<float>(HWY_NAMESPACE::SumAndProduct())};
  for (const int64_t set : harness::InstructionSets()) {
    const harness::InstructionSetLimit limit(set);
    loops.push_back(HWY_DYNAMIC_DISPATCH(VectorLoop)());
  }
  return loops;
}

TEST(ElementFormula, ComputesEachPosition) {
  const std::vector<float> x = Numbers(1);
  const std::vector<float> y = Numbers(-20);
  const std::vector<float> w = Numbers(3);
  std::vector<float> expected_sum(kCount);
  std::vector<float> expected_product(kCount);
  for (size_t i = 0; i < x.size(); ++i) {
    expected_sum[i] = x[i] + y[i] * w[i];
    expected_product[i] = x[i] * y[i];
  }
  for (const ElementLoop<float>& loop : AllLoops()) {
    std::vector<float> sum(kCount + 1, 99);
    std::vector<float> product(kCount + 1, 99);
    loop(
        {.inputs = {{{x.data()}, {y.data()}, {w.data()}}}, .outputs = {sum.data(), product.data()}},
        kCount);
    // Nothing is written after the last position.
    EXPECT_EQ(sum.back(), 99);
    EXPECT_EQ(product.back(), 99);
    sum.pop_back();
    product.pop_back();
    EXPECT_THAT(sum, ElementsAreArray(expected_sum));
    EXPECT_THAT(product, ElementsAreArray(expected_product));
  }
}

TEST(ElementFormula, TakesOneForAnAbsentInputAndRepeatsANumber) {
  const std::vector<float> x = Numbers(1);
  const float y = 5;
  std::vector<float> expected(kCount);
  for (size_t i = 0; i < x.size(); ++i) expected[i] = x[i] + y;
  for (const ElementLoop<float>& loop : AllLoops()) {
    std::vector<float> sum(kCount);
    loop({.inputs = {{{x.data()}, {&y, 0}}}, .outputs = {sum.data()}}, kCount);
    EXPECT_THAT(sum, ElementsAreArray(expected));
  }
}

TEST(ElementFormula, LeavesAnOutputOutThatIsNotWanted) {
  const std::vector<float> x = Numbers(1);
  for (const ElementLoop<float>& loop : AllLoops()) {
    std::vector<float> product(kCount);
    loop({.inputs = {{{x.data()}, {x.data()}}}, .outputs = {nullptr, product.data()}}, kCount);
    EXPECT_EQ(product[6], 49);
    EXPECT_EQ(product.back(), 37 * 37);
  }
}

TEST(ElementFormula, WritesOverItsInputs) {
  std::vector<float> expected(kCount);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = Numbers(1)[i] * Numbers(2)[i];
  for (const ElementLoop<float>& loop : AllLoops()) {
    std::vector<float> x = Numbers(1);
    std::vector<float> y = Numbers(2);
    loop({.inputs = {{{x.data()}, {y.data()}}}, .outputs = {y.data(), x.data()}}, kCount);
    EXPECT_THAT(x, ElementsAreArray(expected));
    EXPECT_EQ(y[0], 3);
    EXPECT_EQ(y.back(), 37 + 38);
  }
}

TEST(ElementArrays, FromAPositionOnKeepsNumbersAndWhatIsAbsent) {
  const std::vector<float> x = Numbers(1);
  std::vector<float> out(kCount);
  const float number = 5;
  const ElementArrays<float> all{.inputs = {{{x.data()}, {&number, 0}}},
                                 .outputs = {nullptr, out.data()}};
  const ElementArrays<float> rest = all.From(7);
  EXPECT_EQ(rest.At(0, 0), 8);
  EXPECT_EQ(rest.At(1, 3), 5);
  EXPECT_EQ(rest.At(2, 3), 1);
  EXPECT_EQ(rest.outputs[0], nullptr);
  EXPECT_EQ(rest.outputs[1], out.data() + 7);
}

}  // namespace
}  // namespace skiff
#endif  // HWY_ONCE
