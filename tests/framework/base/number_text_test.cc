#include "framework/base/number_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <string>

#include "tests/harness/foreign_locale.h"

namespace skiff {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string Printed(const char* format, int digits, double value) {
  std::string text(400, '\0');
  text.resize(static_cast<size_t>(std::snprintf(text.data(), text.size(), format, digits, value)));
  return text;
}

TEST(NumberText, IsWhatPrintfWrites) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    const auto value = std::bit_cast<double>(static_cast<uint64_t>(random()));
    const int digits = i % 20;
    if (std::isnan(value)) continue;
    EXPECT_EQ(FormatFixed(value, digits), Printed("%.*f", digits, value));
    EXPECT_EQ(FormatGeneral(value, digits), Printed("%.*g", digits, value));
  }
  for (const double value : {0.0, -0.0, 0.5, 1.5, 2.5, 999.995, -1e15, 1e-300, kInfinity,
                             -kInfinity, std::numeric_limits<double>::max()}) {
    for (const int digits : {0, 1, 2, 6}) {
      EXPECT_EQ(FormatFixed(value, digits), Printed("%.*f", digits, value));
      EXPECT_EQ(FormatGeneral(value, digits), Printed("%.*g", digits, value));
    }
  }
  EXPECT_EQ(FormatFixed(NAN, 2), "nan");
}

TEST(NumberText, OfPaddedNumbersHasNoFewerDigitsThanTheNumber) {
  EXPECT_EQ(FormatPadded(0, 0), "0");
  EXPECT_EQ(FormatPadded(7, 3), "007");
  EXPECT_EQ(FormatPadded(1234567, 3), "1234567");
  EXPECT_EQ(FormatPadded(UINT64_MAX, 21), "018446744073709551615");
  EXPECT_EQ(FormatHex(0xabc, 2), "abc");
  EXPECT_EQ(FormatHex(0xabc, 8), "00000abc");
  EXPECT_EQ(FormatHex(UINT64_MAX, 16), "ffffffffffffffff");
}

TEST(NumberText, OfTheShortestFormReadsBack) {
  EXPECT_EQ(FormatShortest(0.1), "0.1");
  EXPECT_EQ(FormatShortest(1e300), "1e+300");
  std::mt19937_64 random(4);
  for (int i = 0; i < 2000; ++i) {
    const auto value = std::bit_cast<double>(static_cast<uint64_t>(random()));
    if (!std::isnan(value)) {
      EXPECT_EQ(ParseNumber<double>(FormatShortest(value)), value);
    }
  }
}

TEST(NumberText, IsParsedAsAWholeOrNotAtAll) {
  EXPECT_EQ(ParseNumber<int64_t>("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(ParseNumber<int32_t>("12"), 12);
  EXPECT_EQ(ParseNumber<double>("-1.5e3"), -1500);
  EXPECT_EQ(ParseNumber<double>("inf"), kInfinity);
  EXPECT_TRUE(std::isnan(ParseNumber<double>("nan").value()));
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "0x1", "1,5", "-", "one"}) {
    EXPECT_EQ(ParseNumber<int32_t>(text), std::nullopt) << text;
    EXPECT_EQ(ParseNumber<double>(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseNumber<int32_t>("2147483648"), std::nullopt);
  EXPECT_EQ(ParseNumber<uint32_t>("-1"), std::nullopt);
  EXPECT_EQ(ParseNumber<double>("1e400"), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(, InForeignLocale, ForeignLocales(), ForeignLocaleName);

TEST_P(InForeignLocale, NumberTextStaysTheSame) {
  EXPECT_EQ(FormatFixed(1234567.5, 2), "1234567.50");
  EXPECT_EQ(FormatGeneral(0.125, 2), "0.12");
  EXPECT_EQ(FormatShortest(1234567.5), "1234567.5");
  EXPECT_EQ(FormatPadded(1234567, 8), "01234567");
  EXPECT_EQ(FormatHex(0x1234567, 8), "01234567");
  EXPECT_EQ(ParseNumber<double>("0.5"), 0.5);
  EXPECT_EQ(ParseNumber<double>("0,5"), std::nullopt);
  EXPECT_EQ(ParseNumber<int64_t>("1.000"), std::nullopt);
}

}  // namespace
}  // namespace skiff
