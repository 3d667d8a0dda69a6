// Numbers as text and back, the same in every locale: neither the host program's setlocale nor its
// std::locale::global changes a result. All code that reads or writes files uses these functions or
// StrCat; printf, strtod and streams follow the locale.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace skiff {

// Returns what printf's "%.<digits>f" writes in the C locale: FormatFixed(2.5, 2) is "2.50".
std::string FormatFixed(double value, int digits);

// Returns what printf's "%.<digits>g" writes in the C locale: FormatGeneral(1e-9, 3) is "1e-09".
std::string FormatGeneral(double value, int digits);

// Returns the shortest text that ParseNumber<double> reads back as the same number.
std::string FormatShortest(double value);

// Returns the hexadecimal digits of a number, at least `digits` of them: FormatHex(10, 4) is
// "000a".
std::string FormatHex(uint64_t value, int digits);

// Returns the decimal digits of a number, at least `digits` of them: FormatPadded(7, 3) is "007".
std::string FormatPadded(uint64_t value, int digits);

// Returns the number that the whole of `text` spells, or nothing: for an empty text, for spaces or
// anything else around the number, for a leading '+', and for a number that T can't hold. Floating
// point may be in decimal or exponent form, or be inf or nan.
template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace skiff
