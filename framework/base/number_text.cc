#include "framework/base/number_text.h"

#include <array>
#include <limits>

namespace skiff {
namespace {

template <typename... Format>
std::string Text(double value, int digits, Format... format) {
  // The digits before the point, and sign, point and exponent.
  constexpr int kRoom = std::numeric_limits<double>::max_exponent10 + 16;
  std::string text(static_cast<size_t>(kRoom + digits), '\0');
  // std::to_chars ignores the locale, unlike printf and streams.
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value, format...);
  text.resize(static_cast<size_t>(end - text.data()));
  return text;
}

std::string PaddedText(uint64_t value, int digits, int base) {
  std::array<char, 20> text;  // 2^64 has that many decimal digits
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value, base);
  const std::string_view written(text.data(), static_cast<size_t>(end - text.data()));
  const size_t width = digits < 0 ? 0 : static_cast<size_t>(digits);
  const size_t zeros = width > written.size() ? width - written.size() : 0;
  return std::string(zeros, '0').append(written);
}

}  // namespace

std::string FormatFixed(double value, int digits) {
  return Text(value, digits, std::chars_format::fixed, digits);
}

std::string FormatGeneral(double value, int digits) {
  return Text(value, digits, std::chars_format::general, digits);
}

std::string FormatShortest(double value) { return Text(value, 0); }

std::string FormatHex(uint64_t value, int digits) { return PaddedText(value, digits, 16); }

std::string FormatPadded(uint64_t value, int digits) { return PaddedText(value, digits, 10); }

}  // namespace skiff
