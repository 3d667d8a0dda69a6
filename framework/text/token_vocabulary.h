// The tokens of one side of a translation model, and their ids.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "framework/text/marks.h"
#include "framework/text/word_pieces.h"

namespace skiff::text {

// The sides of a model, as TokenVocabulary::Files takes them.
inline constexpr const char* kSourceSide = "source";
inline constexpr const char* kTargetSide = "target";

// The kinds of token.
enum class TokenKind {
  kWord,       // a word between white space
  kCharacter,  // a code point
  kPiece,      // of a word (WordPieces)
};
// Returns kWord for "words", kCharacter for "characters", kPiece for "bpe". Throws an Error
// (kInvalidArgument) for another name.
TokenKind ParseTokenKind(std::string_view name);
// The opposite.
std::string_view NameOf(TokenKind kind);
// Returns the words or the characters of a text in UTF-8; for kPiece its words, which only a
// vocabulary knows the pieces of. Malformed bytes become U+FFFD, a carriage return counts as a
// blank.
std::vector<std::string> TokensOf(std::string_view text, TokenKind kind);

// Constant, so many threads may use it.
class TokenVocabulary {
 public:
  // The tokens that the texts have at least `least_count` times, the most frequent ones first, at
  // most `size` with the marks of marks.h. Of tokens with the same count, the smaller text comes
  // first. Pieces are in the order of WordPieces::Learn. Throws an Error (kInvalidArgument) for a
  // size below 4 and a count below 1; for pieces also for a count above 1, and the Errors of Learn.
  static TokenVocabulary Of(std::span<const std::string> texts, TokenKind kind, int64_t size,
                            int64_t least_count);
  // Reads the files of a side from a directory, which are as Files returns them. Throws an Error
  // that names the file: kNotFound and kIo as ReadFile; kDataLoss if the file has another format,
  // if a token is there twice, and if the two files of pieces have different pieces.
  static TokenVocabulary Load(const std::string& directory, std::string_view side);

  TokenKind kind() const { return kind_; }
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  // Returns a line with the kind of token, then a line for each token, in the order of the ids.
  std::string Text() const;
  // Returns {name: contents} of the files beside a saved model, for the side "source":
  // source_vocabulary.txt, which is Text(), and for pieces source_pieces.model, a model file of
  // SentencePiece.
  std::map<std::string, std::string> Files(std::string_view side) const;

  // Returns the ids of the tokens of a text.
  std::vector<int64_t> Encode(std::string_view text) const;
  // Returns the text of ids up to kEndId; single blanks separate words, including words of pieces.
  // Throws an Error (kOutOfRange) for an id outside [0, size()).
  std::string Decode(std::span<const int64_t> ids) const;
  const std::string& token(int64_t id) const { return tokens_.at(static_cast<size_t>(id)); }

 private:
  TokenVocabulary(TokenKind kind, std::vector<std::string> tokens,
                  std::optional<WordPieces> pieces = std::nullopt);
  // The inverse of Text. A vocabulary of pieces is returned without pieces_.
  static TokenVocabulary Parse(std::string_view text, const std::string& source);

  TokenKind kind_;
  std::vector<std::string> tokens_;
  std::optional<WordPieces> pieces_;  // of the kind kPiece
  std::unordered_map<std::string, int64_t> ids_;
};

// Returns a checksum of the tokens of both sides, their ids and, for pieces, the rules for cutting
// texts: the CRC-32 of TokenVocabulary::Files, as text.
std::string VocabularyChecksum(const TokenVocabulary& source, const TokenVocabulary& target);

}  // namespace skiff::text
