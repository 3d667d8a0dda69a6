#include "framework/ir/text_scanner.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <unordered_set>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/ir/text_escape.h"

namespace skiff {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// Also letters, for exponents, hexadecimal digits, inf and nan: a token such as 12ab is read whole
// and then refused, instead of being split into a number and a word.
bool IsNumberPart(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
         c == '+' || c == '-';
}

}  // namespace

bool TextScanner::TryPunctuation(char character) {
  if (AtEnd() || Peek() != character) return false;
  Advance(1);
  return true;
}

void TextScanner::Punctuation(char character) {
  if (!TryPunctuation(character)) ThrowExpected(std::string("'") + character + "'");
}

std::string_view TextScanner::PeekWord() const {
  size_t end = position_;
  if (AtEnd() || !IsBareNameStart(Peek())) return {};
  while (end < text_.size() && IsBareNamePart(text_[end])) ++end;
  return text_.substr(position_, end - position_);
}

bool TextScanner::TryWord(std::string_view word) {
  if (PeekWord() != word) return false;
  Advance(word.size());
  return true;
}

void TextScanner::Word(std::string_view word) {
  if (!TryWord(word)) ThrowExpected(Quote(word));
}

std::string_view TextScanner::AnyWord(std::string_view what) {
  const std::string_view word = PeekWord();
  if (word.empty()) ThrowExpected(what);
  Advance(word.size());
  return word;
}

std::string TextScanner::Name(std::string_view what) {
  return Peek() == '"' ? String(what) : std::string(AnyWord(what));
}

std::string TextScanner::String(std::string_view what) {
  if (Peek() != '"') ThrowExpected(what);
  const size_t start = position_++;
  std::string value;
  while (!AtEnd() && Peek() != '"') {
    if (Peek() == '\n') ThrowAt(start, "the string has no closing quote in its line");
    value += Peek() == '\\' ? Escape() : text_[position_++];
  }
  if (AtEnd()) ThrowAt(start, "the string has no closing quote");
  Advance(1);
  return value;
}

void TextScanner::Slots(char close, const std::function<void(std::string name)>& read) {
  if (TryPunctuation(close)) return;
  std::unordered_set<std::string> seen;  // a text may have any number
  do {
    const size_t start = position_;
    std::string name = Name("the name of a slot");
    if (!seen.insert(name).second) {
      ThrowAt(start, StrCat("slot ", Quote(name), " is there twice"));
    }
    Punctuation(':');
    read(std::move(name));
  } while (TryPunctuation(','));
  Punctuation(close);
}

std::string_view TextScanner::PeekNumber() const {
  size_t end = position_;
  while (end < text_.size() && IsNumberPart(text_[end])) ++end;
  return text_.substr(position_, end - position_);
}

float TextScanner::Float(std::string_view what) { return ReadFloatingPoint<float, uint32_t>(what); }

double TextScanner::Double(std::string_view what) {
  return ReadFloatingPoint<double, uint64_t>(what);
}

template <typename FloatingPoint, typename Bits>
FloatingPoint TextScanner::ReadFloatingPoint(std::string_view what) {
  const std::string_view digits = PeekNumber();
  if (digits == "nan") return Nan<FloatingPoint, Bits>();
  if (digits == "inf" || digits == "-inf") {
    Advance(digits.size());
    const FloatingPoint infinity = std::numeric_limits<FloatingPoint>::infinity();
    return digits == "inf" ? infinity : -infinity;
  }
  // ParseNumber accepts more spellings of the special values than the text format.
  const bool is_number = digits.find_first_of("0123456789") != std::string_view::npos;
  const std::optional<FloatingPoint> value = ParseNumber<FloatingPoint>(digits);
  if (!is_number || !value) ThrowExpected(StrCat(what, " within the range of its type"));
  Advance(digits.size());
  return *value;
}

template <typename FloatingPoint, typename Bits>
FloatingPoint TextScanner::Nan() {
  const size_t start = position_;
  Advance(3);
  if (!TryPunctuation('(')) return std::numeric_limits<FloatingPoint>::quiet_NaN();
  const std::string_view digits = PeekNumber();
  Bits bits{};
  const bool is_hex = digits.starts_with("0x") && ReadWhole(digits.substr(2), &bits, 16);
  const auto value = std::bit_cast<FloatingPoint>(bits);
  if (!is_hex || value == value) {
    ThrowAt(start, "expected the bits of a NaN as in nan(0x7fc00001)");
  }
  Advance(digits.size());
  Punctuation(')');
  return value;
}

char TextScanner::Escape() {
  const size_t start = position_++;
  const char kind = Peek();
  ++position_;
  switch (kind) {
    case '"':
    case '\\':
      return kind;
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'x':
      return HexByte(start);
    default:
      ThrowAt(start, "unknown escape, expected one of \\\" \\\\ \\n \\t \\r \\xHH");
  }
}

char TextScanner::HexByte(size_t start) {
  const std::string_view digits = text_.substr(position_, 2);
  unsigned char byte = 0;
  if (digits.size() != 2 || !ReadWhole(digits, &byte, 16)) {
    ThrowAt(start, "expected two hexadecimal digits after \\x");
  }
  position_ += 2;
  return static_cast<char>(byte);
}

void TextScanner::Advance(size_t characters) {
  position_ += characters;
  SkipSpace();
}

void TextScanner::SkipSpace() {
  while (!AtEnd()) {
    if (StartsComment()) {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (IsBlank(Peek())) {
      ++position_;
    } else {
      return;
    }
  }
}

// In x#7, the # is part of a value's name.
bool TextScanner::StartsComment() const {
  return Peek() == '#' && (position_ == 0 || IsBlank(text_[position_ - 1]));
}

void TextScanner::ThrowExpected(std::string_view what) const {
  ThrowAt(position_, StrCat("expected ", what, ", found ", Found()));
}

// Lines are counted only for a message, so that scanning doesn't pay for it.
void TextScanner::ThrowAt(size_t position, std::string_view message) const {
  size_t line = 1;
  size_t line_start = 0;
  for (size_t i = 0; i < position; ++i) {
    if (text_[i] != '\n') continue;
    ++line;
    line_start = i + 1;
  }
  Throw(ErrorCode::kInvalidArgument, "line ", line, ", column ", position - line_start + 1, ": ",
        message);
}

std::string TextScanner::Found() const {
  if (AtEnd()) return "the end of the text";
  constexpr size_t kShownCharacters = 20;
  const std::string_view rest = text_.substr(position_, kShownCharacters);
  return Quote(rest.substr(0, rest.find_first_of("\r\n")));
}

}  // namespace skiff
