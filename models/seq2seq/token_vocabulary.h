// The tokens of one side of a translation model, and their ids.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace skiff::models {

// What a token is.
enum class TokenKind {
  kWord,       // what white space separates
  kCharacter,  // a code point
};
// Returns kWord for "words", kCharacter for "characters". Throws an Error (kInvalidArgument) for
// another name.
TokenKind ParseTokenKind(std::string_view name);
// Returns "words" or "characters".
std::string_view NameOf(TokenKind kind);
// Returns the tokens of a text in UTF-8. Malformed bytes become U+FFFD.
std::vector<std::string> TokensOf(std::string_view text, TokenKind kind);

// Constant, so many threads may use it.
class TokenVocabulary {
 public:
  static constexpr int64_t kBegin = 0;    // before the first token of a target
  static constexpr int64_t kEnd = 1;      // after the last one
  static constexpr int64_t kUnknown = 2;  // a token that isn't in the vocabulary

  // The tokens that the texts have at least `least_count` times, the most frequent ones first, at
  // most `size` with the three above. Of tokens with the same count, the smaller text comes first.
  // Throws an Error (kInvalidArgument) for a size below 4 and a count below 1.
  static TokenVocabulary Of(std::span<const std::string> texts, TokenKind kind, int64_t size,
                            int64_t least_count);
  // The opposite of Text. Throws an Error (kDataLoss) if it is no such text, or has a token twice.
  static TokenVocabulary Parse(std::string_view text, const std::string& source);

  TokenKind kind() const { return kind_; }
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  // Returns a line that says what a token is, then a line for each token, in the order of the ids.
  std::string Text() const;

  // Returns the ids of the tokens of a text.
  std::vector<int64_t> Encode(std::string_view text) const;
  // Returns the text of ids up to kEnd; words are separated by blanks. Throws an Error
  // (kOutOfRange) for an id outside [0, size()).
  std::string Decode(std::span<const int64_t> ids) const;
  const std::string& token(int64_t id) const { return tokens_.at(static_cast<size_t>(id)); }

 private:
  TokenVocabulary(TokenKind kind, std::vector<std::string> tokens);

  TokenKind kind_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int64_t> ids_;
};

}  // namespace skiff::models
