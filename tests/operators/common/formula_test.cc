// A formula gives the same for vectors of each instruction set as for numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include "tests/harness/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/operators/common/formula_test.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "operators/common/cpu/formula-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

// Formulas of which vectors give the numbers that numbers give, but for the sign of zero.
template <class V>
V ExactFormula(int number, V x) {
  switch (number) {
    case 0:
      return Abs(x);
    case 1:
      return Sqrt(x);
    case 2:
      return Floor(x);
    case 3:
      return Ceil(x);
    case 4:
      return Round(x);
    case 5:
      return AtLeast(V{2}, x);
    case 6:
      return AtMost(V{2}, x);
    case 7:
      return AboveMinusInfinity(x);
    case 8:
      return NearestFinite(x);
    case 9:
      return Where(x < V{1}, V{3}, x);
    case 10:
      return Where(x <= V{1}, V{3}, x);
    case 11:
      return OnlyWhere(x > V{0} && x < V{6}, x);
    case 12:
      return ZeroWhere(x < V{0} || x >= V{2.5}, x);
    case 13:
      return -x + V{1} - x * V{3} / V{7};
    case 14:
      return WhereLazily(
          x < V{1}, [&] { return V{3}; }, [&] { return x; });
    case 15:
      return WrappingAdd(WrappingMul(x, V{2}), WrappingSub(WrappingDivide(x, V{3}), x));
    case 16:
      return Trunc(x);
    case 17:
      return OnlyWhere(Trunc(x) == V{-2}, x);
    default:
      return x;
  }
}
constexpr int kExactFormulas = 18;

// Formulas of which vectors give almost the same. Those from kOfNumbers on aren't defined for NaN.
template <class V>
V NearFormula(int number, V x) {
  switch (number) {
    case 0:
      return Exp(x);
    case 1:
      return Log(x);
    case 2:
      return MulAdd(x, V{3}, V{1});
    case 3:
      return NegMulAdd(x, V{3}, V{1});
    case 4:
      return Expm1(AtMost(V{80}, AtLeast(V{-80}, x)));
    case 5:
      return Log1p(Abs(NearestFinite(x)));
    case 6:
      return Tanh(NearestFinite(x));
    case 7:
      return V{1} / (V{1} + QuickExp(BelowExpReach(-x)));
    case 8:
      return QuickExp(AboveMinusExpReach(AtMost(V{80}, x)));
    case 9:
      return NormalAt(AboveMinusExpReach(BelowExpReach(x))).below;
    case 10:
      return NormalAt(AboveMinusExpReach(BelowExpReach(x))).density;
    default:
      return x;
  }
}
constexpr int kNearFormulas = 11;
constexpr int kOfNumbers = 4;

// `count` is a multiple of the lanes of any instruction set.
void OfEach(bool is_exact, int number, const float* x, float* out, size_t count) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const Lanes<hn::ScalableTag<float>> v(hn::LoadU(d, x + i));
    hn::StoreU((is_exact ? ExactFormula(number, v) : NearFormula(number, v)).v, d, out + i);
  }
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(OfEach);

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMost = std::numeric_limits<float>::max();
const float kNumbers[] = {0.0f,      -0.0f,       1.0f,    -1.0f,
                          2.0f,      2.5f,        -2.5f,   0.5f,
                          -0.5f,     0.49999997f, 3.25f,   -7.5f,
                          13.0f,     1e-20f,      -1e-20f, 1e-3f,
                          -60.0f,    70.0f,       6.0f,    1e9f,
                          -1e9f,     100.5f,      kMost,   -kMost,
                          kInfinity, -kInfinity,  0.3f,    std::numeric_limits<float>::quiet_NaN()};

// Calls check(x, found) for the results of all numbers on each instruction set.
template <typename Check>
void ForAllNumbers(bool is_exact, int number, const Check& check) {
  std::vector<float> x(std::begin(kNumbers), std::end(kNumbers));
  x.resize((x.size() + 15) / 16 * 16, 1.0f);
  for (const int64_t set : harness::InstructionSets()) {
    const harness::InstructionSetLimit limit(set);
    std::vector<float> out(x.size());
    HWY_DYNAMIC_DISPATCH(OfEach)(is_exact, number, x.data(), out.data(), x.size());
    SCOPED_TRACE(harness::InstructionSetName(set));
    for (size_t i = 0; i < x.size(); ++i) check(x[i], out[i]);
  }
}

TEST(Formula, GivesTheSameForVectorsWhereItIsExact) {
  for (int number = 0; number < HWY_NAMESPACE::kExactFormulas; ++number) {
    ForAllNumbers(true, number, [&](float x, float found) {
      const float expected = HWY_NAMESPACE::ExactFormula(number, x);
      const bool is_same = found == expected || (std::isnan(found) && std::isnan(expected));
      EXPECT_TRUE(is_same) << "formula " << number << " of " << x << ": found " << found
                           << ", expected " << expected;
    });
  }
}

TEST(Formula, GivesAlmostTheSameForVectorsElsewhere) {
  for (int number = 0; number < HWY_NAMESPACE::kNearFormulas; ++number) {
    ForAllNumbers(false, number, [&](float x, float found) {
      if (std::isnan(x) && number >= HWY_NAMESPACE::kOfNumbers) return;
      const double expected = HWY_NAMESPACE::NearFormula(number, x);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(found)) << "formula " << number << " of " << x;
        return;
      }
      if (std::isinf(expected)) {
        EXPECT_EQ(found, expected) << "formula " << number << " of " << x;
        return;
      }
      EXPECT_NEAR(found, expected, 1e-6 * std::max(std::abs(expected), 1e-30))
          << "formula " << number << " of " << x;
    });
  }
}

// A negative zero would be none of what pads a blocked layout.
TEST(Formula, KeepsZeroOfVectorsPositive) {
  for (const int number : {0, 1, 2, 3, 4, 7, 8, 11, 12}) {
    ForAllNumbers(true, number, [&](float x, float found) {
      if (x == 0 && !std::signbit(x)) {
        EXPECT_FALSE(std::signbit(found)) << "formula " << number;
      }
    });
  }
}

TEST(Formula, OfIntegersWrapsAround) {
  constexpr int32_t kLowest = std::numeric_limits<int32_t>::lowest();
  EXPECT_EQ(Abs(kLowest), kLowest);
  EXPECT_EQ(Abs(int32_t{-5}), 5);
  EXPECT_EQ(WrappingDivide(kLowest, int32_t{-1}), kLowest);
  EXPECT_EQ(WrappingDivide(int32_t{-7}, int32_t{2}), -3);
  EXPECT_EQ(WrappingDivide(7.0, 2.0), 3.5);
}

}  // namespace
}  // namespace skiff
#endif  // HWY_ONCE
