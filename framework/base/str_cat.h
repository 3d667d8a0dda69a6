// Text from pieces: StrCat and Join. Numbers are written the same way in every locale, so the
// result may go into a file format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace skiff {

// One argument of StrCat. Integers and unscoped enumerators are written in decimal, bool as 0 or 1,
// floating point as printf's "%g" does in the C locale (six significant digits), an address in
// hexadecimal. Any other type T takes part by a function `std::string TextOf(const T&)` in its own
// namespace.
//
// A TextPiece may refer to the value that it was made from: use the TextPiece within one full
// expression.
class TextPiece {
 public:
  TextPiece(std::string_view text) : text_(text) {}
  TextPiece(const std::string& text) : text_(text) {}
  TextPiece(const char* text) : text_(text) {}
  TextPiece(char character) : digits_{character}, text_(digits_.data(), 1) {}
  TextPiece(double number);
  TextPiece(const void* address);

  template <typename T>
  requires std::is_integral_v<T> || std::is_enum_v<T> && std::is_convertible_v<T, int64_t>
  TextPiece(T number) {
    if constexpr (!std::is_unsigned_v<T>) {
      SetSigned(number);
    } else {
      SetUnsigned(number);
    }
  }

  // The default argument holds the text until the end of the full expression.
  template <typename T, typename = decltype(TextOf(std::declval<const T&>()))>
  TextPiece(const T& value, std::string&& text = {}) : text_(text = TextOf(value)) {}

  TextPiece(const TextPiece&) = delete;
  TextPiece& operator=(const TextPiece&) = delete;

  std::string_view text() const { return text_; }

 private:
  void SetSigned(long long number);
  void SetUnsigned(unsigned long long number);

  // Room for -2^63, for an address, and for a double of six digits with its exponent.
  std::array<char, 24> digits_;
  std::string_view text_;
};

// Returns the texts of all pieces, one after the other.
std::string ConcatenatePieces(std::initializer_list<const TextPiece*> pieces);

// Returns the texts of the arguments, one after the other: StrCat("axis = ", 3) is "axis = 3".
template <typename... Args>
std::string StrCat(const Args&... args) {
  return [](const auto&... pieces) { return ConcatenatePieces({&pieces...}); }(TextPiece(args)...);
}

// Returns the texts of the elements with `separator` between them: Join({1, 2}, ", ") is "1, 2".
template <typename Range>
std::string Join(const Range& range, std::string_view separator) {
  std::string joined;
  bool first = true;
  for (const auto& element : range) {
    if (!first) joined += separator;
    joined += TextPiece(element).text();
    first = false;
  }
  return joined;
}

}  // namespace skiff
