#include "models/seq2seq/parallel_text.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "framework/io/text_lines.h"
#include "framework/tensor/philox.h"
#include "models/common/text/random_draws.h"
#include "models/common/text/unicode.h"

namespace skiff::models {
namespace {

bool IsBlank(std::string_view text) {
  return std::ranges::all_of(text::DecodeUtf8(text), text::IsWhiteSpace);
}

// Keeps pairs with a text on both sides.
void Add(std::string_view source, std::string_view target, const std::string& place,
         std::vector<TextPair>* pairs) {
  const bool has_source = !IsBlank(source);
  SKIFF_ENFORCE(has_source == !IsBlank(target), kDataLoss, place, ": ",
                has_source ? "no target for the source \"" : "no source for the target \"",
                has_source ? source : target, "\"");
  if (has_source) pairs->push_back({std::string(source), std::string(target)});
}

constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};
constexpr std::array<std::string_view, 7> kWeekdays = {
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};

struct Date {
  int64_t year, month, day;
};

std::string TwoDigits(int64_t number) { return StrCat(number < 10 ? "0" : "", number); }

std::string Ordinal(int64_t number) {
  const bool is_teen = number / 10 == 1;
  const int64_t last = number % 10;
  const char* suffix = is_teen     ? "th"
                       : last == 1 ? "st"
                       : last == 2 ? "nd"
                       : last == 3 ? "rd"
                                   : "th";
  return StrCat(number, suffix);
}

// The day of the week, by Zeller's congruence; 0: Monday.
size_t WeekdayOf(const Date& date) {
  const int64_t month = date.month < 3 ? date.month + 12 : date.month;
  const int64_t year = date.month < 3 ? date.year - 1 : date.year;
  const int64_t from_saturday = (date.day + 13 * (month + 1) / 5 + year % 100 + year % 100 / 4 +
                                 year / 100 / 4 + 5 * (year / 100)) %
                                7;
  return static_cast<size_t>((from_saturday + 5) % 7);
}

std::string Written(const Date& date, text::RandomDraws* draws) {
  const std::string_view month = kMonths[static_cast<size_t>(date.month) - 1];
  const std::string_view weekday = kWeekdays[WeekdayOf(date)];
  switch (draws->Below(10)) {
    case 0:
      return StrCat(date.day, " ", month, " ", date.year);
    case 1:
      return StrCat(month, " ", date.day, ", ", date.year);
    case 2:
      return StrCat(date.day, ".", date.month, ".", date.year);
    case 3:
      return StrCat(TwoDigits(date.month), "/", TwoDigits(date.day), "/", date.year);
    case 4:
      return StrCat(month.substr(0, 3), " ", Ordinal(date.day), " ", date.year);
    case 5:
      return StrCat("the ", Ordinal(date.day), " of ", month, ", ", date.year);
    case 6:
      return StrCat(weekday, ", ", month, " ", date.day, ", ", date.year);
    case 7:
      return StrCat(weekday.substr(0, 3), " ", TwoDigits(date.day), " ", month.substr(0, 3), " ",
                    date.year);
    case 8:
      return StrCat(date.year, ", ", month, " ", Ordinal(date.day));
    default:
      return StrCat(date.day, "-", month.substr(0, 3), "-", date.year);
  }
}

}  // namespace

std::vector<TextPair> ReadParallelText(const std::string& source_path,
                                       const std::string& target_path) {
  const std::string source_text = ReadTextFile(source_path);
  const std::string target_text = ReadTextFile(target_path);
  const std::vector<std::string_view> sources = LinesOf(source_text);
  const std::vector<std::string_view> targets = LinesOf(target_text);
  SKIFF_ENFORCE(sources.size() == targets.size(), kDataLoss, source_path, " has ", sources.size(),
                " lines and ", target_path, " has ", targets.size(), ": expected as many");
  std::vector<TextPair> pairs;
  for (size_t i = 0; i < sources.size(); ++i) {
    Add(sources[i], targets[i], StrCat(source_path, " and ", target_path, ", line ", i + 1),
        &pairs);
  }
  SKIFF_ENFORCE(!pairs.empty(), kDataLoss, source_path, ": there is no sentence");
  return pairs;
}

std::vector<TextPair> ReadPairTable(const std::string& path) {
  const std::string table = ReadTextFile(path);
  std::vector<TextPair> pairs;
  int64_t number = 0;
  for (const std::string_view line : LinesOf(table)) {
    const std::string place = StrCat(path, ", line ", ++number);
    if (IsBlank(line)) continue;
    const size_t tab = line.find('\t');
    SKIFF_ENFORCE(tab != std::string_view::npos, kDataLoss, place, ": no tab in \"", line,
                  "\", expected a sentence and its translation");
    const std::string_view rest = line.substr(tab + 1);
    Add(line.substr(0, tab), rest.substr(0, rest.find('\t')), place, &pairs);
  }
  SKIFF_ENFORCE(!pairs.empty(), kDataLoss, path, ": there is no sentence");
  return pairs;
}

std::vector<TextPair> GenerateDates(int64_t count, uint64_t seed) {
  text::RandomDraws draws(Philox({.seed = seed, .op_id = 0, .step = 0}));
  std::vector<TextPair> pairs;
  std::set<std::string> known;
  while (static_cast<int64_t>(pairs.size()) < count) {
    const Date date = {1900 + draws.Below(150), 1 + draws.Below(12), 1 + draws.Below(28)};
    std::string source = Written(date, &draws);
    if (!known.insert(source).second) continue;
    pairs.push_back({std::move(source),
                     StrCat(date.year, "-", TwoDigits(date.month), "-", TwoDigits(date.day))});
  }
  return pairs;
}

}  // namespace skiff::models
