#include "framework/base/str_cat.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <locale>
#include <string>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/base/place.h"

namespace skiff {
namespace {

// Groups digits by three and has a decimal comma, as many locales do.
class GroupedDigits : public std::numpunct<char> {
 protected:
  char do_thousands_sep() const override { return '.'; }
  char do_decimal_point() const override { return ','; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(StrCat, JoinsTextsOfEveryKind) {
  const std::string text = "b";
  EXPECT_EQ(StrCat("a", text, std::string_view("c"), 'd'), "abcd");
  EXPECT_EQ(StrCat(), "");
}

TEST(StrCat, WritesIntegersInDecimal) {
  EXPECT_EQ(StrCat(std::numeric_limits<int64_t>::min(), " ", std::numeric_limits<uint64_t>::max()),
            "-9223372036854775808 18446744073709551615");
  EXPECT_EQ(StrCat(uint8_t{65}, int8_t{-1}, true), "65-11");
}

TEST(StrCat, WritesFloatingPointWithSixDigits) {
  EXPECT_EQ(StrCat(0.1f, " ", 1e6, " ", 1234567.0, " ", -1.5e-300),
            "0.1 1e+06 1.23457e+06 -1.5e-300");
  EXPECT_EQ(StrCat(std::numeric_limits<double>::infinity(), " ", 100000.0), "inf 100000");
}

TEST(StrCat, WritesWhatHasATextOf) {
  EXPECT_EQ(StrCat("dtype ", DType::kFloat32, " on ", Place::Cuda(1)), "dtype float32 on cuda:1");
}

TEST(StrCat, KeepsTheGlobalLocaleOut) {
  const std::locale before =
      std::locale::global(std::locale(std::locale::classic(), new GroupedDigits));
  const std::string text =
      StrCat("save-", 1500, " ", 1234.5, " ", Join(std::vector{1000, 3}, ", "));
  std::locale::global(before);
  EXPECT_EQ(text, "save-1500 1234.5 1000, 3");
}

TEST(Join, SeparatesElements) {
  EXPECT_EQ(Join(std::vector<int>{}, ", "), "");
  EXPECT_EQ(Join(std::vector<int>{1}, ", "), "1");
  EXPECT_EQ(Join(std::vector<int>{1, 2, 3}, ", "), "1, 2, 3");
  EXPECT_EQ(Join(std::vector<std::string>{"a", "b"}, "/"), "a/b");
}

}  // namespace
}  // namespace skiff
