// Properties of characters for BERT's tokenizer: UTF-8 to code points and back, classes, accents.
//
// The Unicode version is the version of the installed ICU library. All functions are thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace skiff::text {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

// Returns the code points of a text. Each malformed sequence, one of a surrogate among them,
// becomes U+FFFD.
std::u32string DecodeUtf8(std::string_view bytes);
// Returns the bytes of code points, none of which is a surrogate.
std::string EncodeUtf8(std::u32string_view characters);
bool IsValidUtf8(std::string_view bytes);
// Returns the number of code points of valid UTF-8.
int64_t CharacterCount(std::string_view utf8);
// Returns whether a byte of valid UTF-8 is the first one of a code point.
bool StartsCharacter(char byte);

// The general categories Cc, Cf and Co, without tab, line feed and carriage return.
bool IsControl(char32_t character);
// Tab, line feed, carriage return and everything with the property White_Space.
bool IsWhiteSpace(char32_t character);
// The general categories P*, and all of ASCII that is neither letter, digit, space nor control
// (so that "$" and "~" separate words too).
bool IsPunctuation(char32_t character);
// The blocks of CJK ideographs whose characters BERT takes for words of their own. Neither kana nor
// hangul.
bool IsCjkIdeograph(char32_t character);

// Returns the canonical decomposition (NFD) without the marks that take no space (category Mn).
std::u32string StripAccents(std::u32string_view characters);
// Returns the lower case of each character for itself: a final sigma becomes σ, not ς.
std::u32string LowerCase(std::u32string_view characters);

}  // namespace skiff::text
