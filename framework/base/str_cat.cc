#include "framework/base/str_cat.h"

#include <charconv>
#include <cstdint>

namespace skiff {
namespace {

// Writes `number` into `digits` and returns what was written. Every caller has room enough.
template <size_t kSize, typename Number, typename... Format>
std::string_view WriteNumber(std::array<char, kSize>& digits, Number number, Format... format) {
  const auto [end, status] =
      std::to_chars(digits.data(), digits.data() + digits.size(), number, format...);
  return {digits.data(), static_cast<size_t>(end - digits.data())};
}

}  // namespace

TextPiece::TextPiece(double number)
    : text_(WriteNumber(digits_, number, std::chars_format::general, 6)) {}

TextPiece::TextPiece(const void* address) {
  digits_[0] = '0';
  digits_[1] = 'x';
  const auto [end, status] = std::to_chars(digits_.data() + 2, digits_.data() + digits_.size(),
                                           reinterpret_cast<uintptr_t>(address), 16);
  text_ = {digits_.data(), static_cast<size_t>(end - digits_.data())};
}

void TextPiece::SetSigned(long long number) { text_ = WriteNumber(digits_, number); }

void TextPiece::SetUnsigned(unsigned long long number) { text_ = WriteNumber(digits_, number); }

std::string ConcatenatePieces(std::initializer_list<const TextPiece*> pieces) {
  size_t size = 0;
  for (const TextPiece* piece : pieces) size += piece->text().size();
  std::string text;
  // One allocation for any number of pieces.
  text.reserve(size);
  for (const TextPiece* piece : pieces) text += piece->text();
  return text;
}

}  // namespace skiff
