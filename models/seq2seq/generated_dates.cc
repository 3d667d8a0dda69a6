#include "models/seq2seq/generated_dates.h"

#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/str_cat.h"
#include "framework/tensor/philox.h"
#include "framework/text/random_draws.h"

namespace skiff::models {
namespace {

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

std::vector<text::TextPair> GenerateDates(int64_t count, uint64_t seed) {
  text::RandomDraws draws(Philox({.seed = seed, .op_id = 0, .step = 0}));
  std::vector<text::TextPair> pairs;
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
