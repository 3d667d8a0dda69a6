#include "framework/ir/text_escape.h"

#include <algorithm>

namespace skiff {
namespace {

// <cctype> depends on the locale.
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

void AppendEscaped(char c, std::string* out) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  *out += "\\x";
  *out += kHexDigits[byte >> 4];
  *out += kHexDigits[byte & 15];
}

// The output is one line of printable ASCII for any bytes, so that texts can be compared, mailed
// and shown anywhere, and the parser gets the same bytes back.
void AppendQuoted(char c, std::string* out) {
  switch (c) {
    case '"':
      *out += "\\\"";
      return;
    case '\\':
      *out += "\\\\";
      return;
    case '\n':
      *out += "\\n";
      return;
    case '\t':
      *out += "\\t";
      return;
    case '\r':
      *out += "\\r";
      return;
    default:
      break;
  }
  if (c >= ' ' && c <= '~') {
    *out += c;
  } else {
    AppendEscaped(c, out);
  }
}

}  // namespace

bool IsBareNameStart(char character) { return IsLetter(character) || character == '_'; }

bool IsBareNamePart(char character) {
  return IsLetter(character) || IsDigit(character) ||
         std::string_view("_.@/-").find(character) != std::string_view::npos;
}

bool IsBareName(std::string_view name) {
  return !name.empty() && IsBareNameStart(name.front()) &&
         std::all_of(name.begin(), name.end(), IsBareNamePart);
}

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) AppendQuoted(c, &quoted);
  return quoted + '"';
}

std::string NameText(std::string_view name) {
  return IsBareName(name) ? std::string(name) : Quote(name);
}

}  // namespace skiff
