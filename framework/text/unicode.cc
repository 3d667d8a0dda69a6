#include "framework/text/unicode.h"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <array>

#include "framework/base/error.h"

namespace skiff::text {
namespace {

struct CodePointRange {
  char32_t first;
  char32_t last;
};

// Blocks of ideographs, as BERT lists them.
constexpr std::array<CodePointRange, 8> kCjkRanges = {{{0x3400, 0x4DBF},
                                                       {0x4E00, 0x9FFF},
                                                       {0xF900, 0xFAFF},
                                                       {0x20000, 0x2A6DF},
                                                       {0x2A700, 0x2B73F},
                                                       {0x2B740, 0x2B81F},
                                                       {0x2B820, 0x2CEAF},
                                                       {0x2F800, 0x2FA1F}}};

// Nothing below has a decomposition.
constexpr char32_t kFirstDecomposable = 0xC0;
constexpr char32_t kCapitalIWithDot = 0x130;
constexpr char32_t kCombiningDotAbove = 0x307;

// Returns the next code point of bytes[*position …], or a negative number for a malformed sequence,
// and moves the position behind it.
UChar32 NextCodePoint(std::string_view bytes, int64_t* position) {
  UChar32 character = 0;
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  const auto size = static_cast<int64_t>(bytes.size());
  U8_NEXT(data, *position, size, character);
  return character;
}

bool IsAscii(char32_t character) { return character < 0x80; }

}  // namespace

std::u32string DecodeUtf8(std::string_view bytes) {
  std::u32string characters;
  characters.reserve(bytes.size());
  for (int64_t position = 0; position < static_cast<int64_t>(bytes.size());) {
    const UChar32 character = NextCodePoint(bytes, &position);
    characters += character < 0 ? kReplacementCharacter : static_cast<char32_t>(character);
  }
  return characters;
}

std::string EncodeUtf8(std::u32string_view characters) {
  std::string bytes;
  bytes.reserve(characters.size());
  for (const char32_t character : characters) {
    std::array<uint8_t, U8_MAX_LENGTH> encoded;
    int length = 0;
    U8_APPEND_UNSAFE(encoded, length, character);
    bytes.append(reinterpret_cast<const char*>(encoded.data()), static_cast<size_t>(length));
  }
  return bytes;
}

bool IsValidUtf8(std::string_view bytes) {
  for (int64_t position = 0; position < static_cast<int64_t>(bytes.size());) {
    if (NextCodePoint(bytes, &position) < 0) return false;
  }
  return true;
}

int64_t CharacterCount(std::string_view utf8) {
  return std::count_if(utf8.begin(), utf8.end(), StartsCharacter);
}

bool StartsCharacter(char byte) { return !U8_IS_TRAIL(byte); }

bool IsControl(char32_t character) {
  if (character == '\t' || character == '\n' || character == '\r') return false;
  return (U_GET_GC_MASK(static_cast<UChar32>(character)) &
          (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) != 0;
}

bool IsWhiteSpace(char32_t character) {
  return u_isUWhiteSpace(static_cast<UChar32>(character)) != 0;
}

bool IsPunctuation(char32_t character) {
  if (IsAscii(character)) {
    return character > ' ' && character < 0x7F && u_isalnum(static_cast<UChar32>(character)) == 0;
  }
  return (U_GET_GC_MASK(static_cast<UChar32>(character)) & U_GC_P_MASK) != 0;
}

bool IsCjkIdeograph(char32_t character) {
  return std::any_of(kCjkRanges.begin(), kCjkRanges.end(), [&](const CodePointRange& range) {
    return character >= range.first && character <= range.last;
  });
}

std::u32string StripAccents(std::u32string_view characters) {
  const bool plain = std::all_of(characters.begin(), characters.end(),
                                 [](char32_t c) { return c < kFirstDecomposable; });
  if (plain) return std::u32string(characters);
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* nfd = icu::Normalizer2::getNFDInstance(status);
  icu::UnicodeString decomposed;
  if (U_SUCCESS(status)) {
    nfd->normalize(
        icu::UnicodeString::fromUTF32(reinterpret_cast<const UChar32*>(characters.data()),
                                      static_cast<int32_t>(characters.size())),
        decomposed, status);
  }
  SKIFF_ENFORCE(U_SUCCESS(status), kIo, "ICU cannot decompose a text: ", u_errorName(status));
  std::u32string stripped;
  for (int32_t i = 0; i < decomposed.length(); i = decomposed.moveIndex32(i, 1)) {
    const UChar32 character = decomposed.char32At(i);
    if (u_charType(character) != U_NON_SPACING_MARK) stripped += static_cast<char32_t>(character);
  }
  return stripped;
}

std::u32string LowerCase(std::u32string_view characters) {
  std::u32string lower;
  lower.reserve(characters.size());
  for (const char32_t character : characters) {
    if (character == kCapitalIWithDot) {
      // The only character whose lower case is two.
      lower += U'i';
      lower += kCombiningDotAbove;
    } else {
      lower += static_cast<char32_t>(u_tolower(static_cast<UChar32>(character)));
    }
  }
  return lower;
}

}  // namespace skiff::text
