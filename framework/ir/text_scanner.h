// Reads the tokens of the text formats of programs and plans. Internal to framework/ir and
// framework/plan.
#pragma once

#include <charconv>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

#include "framework/base/str_cat.h"

namespace skiff {

// A position in a text. Each function that reads a token also skips the blanks and comments after
// it. A comment starts with a `#` that follows a blank or starts the text, and ends with the line.
// Functions without Try or Peek in their names throw an Error (kInvalidArgument), starting with
// line and column, if the text continues with anything else than they ask for.
class TextScanner {
 public:
  // The text must outlive the scanner.
  explicit TextScanner(std::string_view text) : text_(text) { SkipSpace(); }

  bool AtEnd() const { return position_ == text_.size(); }
  size_t position() const { return position_; }
  std::string_view text() const { return text_; }
  // Returns the next character, '\0' at the end.
  char Peek() const { return AtEnd() ? '\0' : text_[position_]; }

  // Reads the next character if it equals `character`. Returns whether it did.
  bool TryPunctuation(char character);
  void Punctuation(char character);

  // Returns the next bare name without reading it, "" if there is none.
  std::string_view PeekWord() const;
  // Reads the bare name if it is next. Returns whether it was.
  bool TryWord(std::string_view word);
  void Word(std::string_view word);
  // Reads any bare name. `what` says in the message what was expected, here and below.
  std::string_view AnyWord(std::string_view what);
  // Reads a quoted or bare name.
  std::string Name(std::string_view what);
  // Reads a string in quotes.
  std::string String(std::string_view what);

  // Reads slots, separated by commas, up to the character that closes them: for each, its name and
  // a colon, and then what read(name) reads. Throws if a name is there twice.
  void Slots(char close, const std::function<void(std::string name)>& read);

  // Returns the characters of the next number, or of the word for a special value, without reading
  // them.
  std::string_view PeekNumber() const;
  template <typename Integer>
  Integer Number(std::string_view what);
  // Reads a number, inf, -inf, nan or nan(0x…) with the bits of a NaN.
  float Float(std::string_view what);
  double Double(std::string_view what);

  [[noreturn]] void ThrowExpected(std::string_view what) const;
  // Throws `message` for another place of the text.
  [[noreturn]] void ThrowAt(size_t position, std::string_view message) const;

 private:
  template <typename T>
  static bool ReadWhole(std::string_view digits, T* value, int base = 10);
  template <typename FloatingPoint, typename Bits>
  FloatingPoint ReadFloatingPoint(std::string_view what);
  template <typename FloatingPoint, typename Bits>
  FloatingPoint Nan();
  char Escape();
  char HexByte(size_t start);
  void Advance(size_t characters);
  void SkipSpace();
  bool StartsComment() const;
  std::string Found() const;

  std::string_view text_;
  size_t position_ = 0;
};

template <typename T>
bool TextScanner::ReadWhole(std::string_view digits, T* value, int base) {
  const char* end = digits.data() + digits.size();
  const auto [stop, status] = std::from_chars(digits.data(), end, *value, base);
  return status == std::errc() && stop == end;
}

template <typename Integer>
Integer TextScanner::Number(std::string_view what) {
  const std::string_view digits = PeekNumber();
  Integer value{};
  if (!ReadWhole(digits, &value)) {
    ThrowExpected(StrCat(what, " in [", +std::numeric_limits<Integer>::min(), ", ",
                         +std::numeric_limits<Integer>::max(), "]"));
  }
  Advance(digits.size());
  return value;
}

}  // namespace skiff
