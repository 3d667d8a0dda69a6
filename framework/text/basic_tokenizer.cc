#include "framework/text/basic_tokenizer.h"

#include "framework/text/unicode.h"

namespace skiff::text {
namespace {

std::u32string Clean(const std::u32string& characters, bool split_cjk) {
  std::u32string cleaned;
  cleaned.reserve(characters.size());
  for (const char32_t character : characters) {
    if (character == kReplacementCharacter || IsControl(character)) continue;
    if (IsWhiteSpace(character)) {
      cleaned += U' ';
    } else if (split_cjk && IsCjkIdeograph(character)) {
      cleaned += {U' ', character, U' '};
    } else {
      cleaned += character;
    }
  }
  return cleaned;
}

std::vector<std::string> Split(std::u32string_view characters) {
  std::vector<std::string> words;
  size_t start = 0;
  const auto end_word = [&](size_t end) {
    if (end > start) words.push_back(EncodeUtf8(characters.substr(start, end - start)));
    start = end;
  };
  for (size_t i = 0; i < characters.size(); ++i) {
    if (IsWhiteSpace(characters[i])) {
      end_word(i);
      start = i + 1;
    } else if (IsPunctuation(characters[i])) {
      end_word(i);
      end_word(i + 1);
    }
  }
  end_word(characters.size());
  return words;
}

}  // namespace

std::vector<std::string> BasicTokens(std::string_view text, const BasicTokenizerOptions& options) {
  std::u32string characters = Clean(DecodeUtf8(text), options.split_cjk);
  if (options.strip_accents.value_or(options.lower_case)) characters = StripAccents(characters);
  if (options.lower_case) characters = LowerCase(characters);
  return Split(characters);
}

}  // namespace skiff::text
