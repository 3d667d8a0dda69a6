// Text to the ids of word pieces: BERT's basic tokenizer, then WordPiece.
//
//   const Tokenizer tokenizer(&vocabulary);
//   tokenizer.Tokens("unaffable");  // {"un", "##aff", "##able"}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/text/basic_tokenizer.h"
#include "framework/text/vocabulary.h"

namespace skiff::text {

// The role of a token in masking, which keeps the pieces of a word together.
enum class TokenRole : int8_t { kSpecial, kWordStart, kInsideWord };

// Tokens of a text, without the [CLS] and [SEP] of an input.
struct TokenSequence {
  std::vector<TokenId> ids = {};
  std::vector<TokenRole> roles = {};  // of each; special are [CLS], [MASK], … and [UNK]

  int64_t size() const { return static_cast<int64_t>(ids.size()); }
  void Add(TokenId id, TokenRole role) {
    ids.push_back(id);
    roles.push_back(role);
  }
};

struct TokenizerOptions {
  BasicTokenizerOptions basic = {};
  // Whether "[MASK]" and the other special tokens, spelt like this in a text, become special
  // tokens, as for BERT. Otherwise they are ordinary words.
  bool special_tokens = true;
  // A longer word is [UNK], whatever its characters are.
  int64_t longest_word = 100;
};

// Gives the same tokens as BertTokenizer of the package `tokenizers`, except for characters that
// are newer than the package's Unicode tables. Thread-safe.
class Tokenizer {
 public:
  // The vocabulary outlives the tokenizer. Throws Error (kInvalidArgument) for longest_word < 1.
  explicit Tokenizer(const Vocabulary* vocabulary, const TokenizerOptions& options = {});

  // Each word is cut, from its start, into the longest tokens that the vocabulary has; a word that
  // can't be cut is [UNK] as a whole. Malformed UTF-8 is left out. Never fails.
  TokenSequence Encode(std::string_view text) const;
  std::vector<std::string> Tokens(std::string_view text) const;

  const Vocabulary& vocabulary() const { return *vocabulary_; }

 private:
  void AddText(std::string_view text, TokenSequence* tokens) const;
  void AddWord(const std::string& word, TokenSequence* tokens) const;

  const Vocabulary* vocabulary_;
  TokenizerOptions options_;
};

}  // namespace skiff::text
