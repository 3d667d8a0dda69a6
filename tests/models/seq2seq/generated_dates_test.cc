#include "models/seq2seq/generated_dates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <set>
#include <string>
#include <vector>

#include "framework/base/str_cat.h"

namespace skiff::models {
namespace {

using ::testing::MatchesRegex;
using ::testing::SizeIs;

// Returns a date in all ways that GenerateDates writes it.
std::vector<std::string> WaysToWrite(const std::string& iso) {
  std::tm date{};
  EXPECT_NE(strptime(iso.c_str(), "%Y-%m-%d", &date), nullptr) << iso;
  const int day = date.tm_mday;
  const std::string ordinal = StrCat(day, day % 20 == 1   ? "st"
                                          : day % 20 == 2 ? "nd"
                                          : day % 20 == 3 ? "rd"
                                                          : "th");
  std::vector<std::string> ways;
  for (const std::string& format :
       {std::string("%-d %B %Y"), std::string("%B %-d, %Y"), std::string("%-d.%-m.%Y"),
        std::string("%m/%d/%Y"), "%b " + ordinal + " %Y", "the " + ordinal + " of %B, %Y",
        std::string("%A, %B %-d, %Y"), std::string("%a %d %b %Y"), "%Y, %B " + ordinal,
        std::string("%-d-%b-%Y")}) {
    char text[64];
    ways.emplace_back(text, std::strftime(text, sizeof text, format.c_str(), &date));
  }
  return ways;
}

TEST(GenerateDates, WritesDatesInTenWays) {
  const auto pairs = GenerateDates(500, 1);
  std::set<std::string> sources;
  std::set<size_t> ways;
  for (const text::TextPair& pair : pairs) {
    EXPECT_THAT(pair.target, MatchesRegex("(19|20)[0-9][0-9]-[01][0-9]-[0-2][0-9]"));
    const std::vector<std::string> expected = WaysToWrite(pair.target);
    const auto found = std::ranges::find(expected, pair.source);
    EXPECT_NE(found, expected.end()) << pair.source << " for " << pair.target;
    ways.insert(static_cast<size_t>(found - expected.begin()));
    sources.insert(pair.source);
  }
  EXPECT_THAT(sources, SizeIs(500));
  EXPECT_THAT(ways, SizeIs(10));
  EXPECT_EQ(GenerateDates(500, 1)[7].source, pairs[7].source);
  EXPECT_NE(GenerateDates(500, 2)[7].source, pairs[7].source);
}

}  // namespace
}  // namespace skiff::models
