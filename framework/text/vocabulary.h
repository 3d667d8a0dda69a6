// The tokens of a WordPiece vocabulary and their ids.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace skiff::text {

using TokenId = int32_t;

inline constexpr std::string_view kPadToken = "[PAD]";
inline constexpr std::string_view kUnknownToken = "[UNK]";
inline constexpr std::string_view kClsToken = "[CLS]";
inline constexpr std::string_view kSepToken = "[SEP]";
inline constexpr std::string_view kMaskToken = "[MASK]";
// All of them, in the order that a vocabulary of ours begins with.
inline constexpr std::string_view kSpecialTokens[] = {kPadToken, kUnknownToken, kClsToken,
                                                      kSepToken, kMaskToken};
// The prefix of a piece that continues a word.
inline constexpr std::string_view kContinuation = "##";

// A copy is independent of the original. Constant, so many threads may use it.
class Vocabulary {
 public:
  // The token tokens[i] has the id i. If a token is there twice, as in published vocabularies, Find
  // returns the token's last id, as other tokenizers do. `source` begins messages. Throws Error:
  // kDataLoss if there are no tokens, or a token is empty, is no valid UTF-8, or has a tab or line
  // end; kNotFound if a special token is missing.
  explicit Vocabulary(std::vector<std::string> tokens, const std::string& source = "vocabulary");

  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  // Throws Error (kOutOfRange) unless 0 <= id < size().
  const std::string& token(TokenId id) const;
  // Returns the id of a token, or nothing if the vocabulary doesn't have it.
  std::optional<TokenId> Find(std::string_view token) const;

  TokenId pad() const { return pad_; }
  TokenId unknown() const { return unknown_; }
  TokenId cls() const { return cls_; }
  TokenId sep() const { return sep_; }
  TokenId mask() const { return mask_; }
  bool IsSpecial(TokenId id) const {
    return id == pad_ || id == unknown_ || id == cls_ || id == sep_ || id == mask_;
  }
  // The length of the longest token: no search needs to try more bytes.
  int64_t longest_token_bytes() const { return longest_token_bytes_; }

  // Returns the tokens in the order of ids, one a line.
  std::string Text() const;

 private:
  // Lets Find look for a part of a text without a copy of it.
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  void AddIds(const std::string& source);
  TokenId Required(std::string_view token, const std::string& source) const;

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, TokenId, Hash, std::equal_to<>> ids_;
  int64_t longest_token_bytes_ = 0;
  TokenId pad_ = 0;
  TokenId unknown_ = 0;
  TokenId cls_ = 0;
  TokenId sep_ = 0;
  TokenId mask_ = 0;
};

// Reads a vocabulary in either form: a token a line, with ids from 0 on (BERT), or token, tab and
// id in any order (ERNIE). Writes a warning to standard error if a token is there twice. Throws the
// Errors of ReadTextFile; Error (kDataLoss) with the line for an id that is no number, outside [0,
// number of lines) or there twice, and if only some lines have a tab; otherwise as the constructor,
// with the path.
Vocabulary ReadVocabulary(const std::string& path);
// Writes one token a line, so that ReadVocabulary returns the same vocabulary.
void SaveVocabulary(const Vocabulary& vocabulary, const std::string& path);

}  // namespace skiff::text
