#include "framework/text/tokenizer.h"

#include <algorithm>
#include <optional>

#include "framework/base/error.h"
#include "framework/text/unicode.h"

namespace skiff::text {
namespace {

struct Occurrence {
  size_t position = std::string_view::npos;
  std::string_view token;
};

// The first special token in a text; none is the beginning of another.
Occurrence FindSpecialToken(std::string_view text) {
  for (size_t at = text.find('['); at != std::string_view::npos; at = text.find('[', at + 1)) {
    for (const std::string_view token : kSpecialTokens) {
      if (text.substr(at).starts_with(token)) return {at, token};
    }
  }
  return {};
}

// The longest prefix of `text`, longer than `shortest` bytes and cut between characters, that is a
// token.
struct Piece {
  TokenId id;
  size_t bytes;
};
std::optional<Piece> LongestPiece(const Vocabulary& vocabulary, std::string_view text,
                                  size_t shortest) {
  const auto longest = static_cast<size_t>(vocabulary.longest_token_bytes());
  size_t bytes = std::min(text.size(), longest);
  for (; bytes > shortest; --bytes) {
    if (bytes < text.size() && !StartsCharacter(text[bytes])) continue;
    if (const auto id = vocabulary.Find(text.substr(0, bytes))) return Piece{*id, bytes};
  }
  return std::nullopt;
}

}  // namespace

Tokenizer::Tokenizer(const Vocabulary* vocabulary, const TokenizerOptions& options)
    : vocabulary_(vocabulary), options_(options) {
  SKIFF_ENFORCE(options.longest_word >= 1, kInvalidArgument,
                "longest_word = ", options.longest_word, ": expected at least 1");
}

TokenSequence Tokenizer::Encode(std::string_view text) const {
  TokenSequence tokens;
  while (options_.special_tokens) {
    const Occurrence special = FindSpecialToken(text);
    if (special.token.empty()) break;
    AddText(text.substr(0, special.position), &tokens);
    tokens.Add(*vocabulary_->Find(special.token), TokenRole::kSpecial);
    text.remove_prefix(special.position + special.token.size());
  }
  AddText(text, &tokens);
  return tokens;
}

std::vector<std::string> Tokenizer::Tokens(std::string_view text) const {
  std::vector<std::string> tokens;
  for (const TokenId id : Encode(text).ids) tokens.push_back(vocabulary_->token(id));
  return tokens;
}

void Tokenizer::AddText(std::string_view text, TokenSequence* tokens) const {
  for (const std::string& word : BasicTokens(text, options_.basic)) AddWord(word, tokens);
}

void Tokenizer::AddWord(const std::string& word, TokenSequence* tokens) const {
  const auto give_up = [&](size_t pieces) {
    tokens->ids.resize(tokens->ids.size() - pieces);
    tokens->roles.resize(tokens->roles.size() - pieces);
    tokens->Add(vocabulary_->unknown(), TokenRole::kSpecial);
  };
  if (CharacterCount(word) > options_.longest_word) return give_up(0);
  std::string rest = word;
  size_t prefix_bytes = 0;
  for (size_t pieces = 0; rest.size() > prefix_bytes; ++pieces) {
    const auto piece = LongestPiece(*vocabulary_, rest, prefix_bytes);
    if (!piece.has_value()) return give_up(pieces);
    tokens->Add(piece->id, pieces == 0 ? TokenRole::kWordStart : TokenRole::kInsideWord);
    rest.replace(0, piece->bytes, kContinuation);
    prefix_bytes = kContinuation.size();
  }
}

}  // namespace skiff::text
