#include "framework/text/token_vocabulary.h"

#include <algorithm>
#include <array>
#include <utility>

#include "framework/base/error.h"
#include "framework/io/byte_stream.h"
#include "framework/io/file.h"
#include "framework/io/text_lines.h"
#include "framework/text/unicode.h"

namespace skiff::text {
namespace {

// In the order of TokenKind.
constexpr std::array<std::string_view, 3> kKindNames = {"words", "characters", "bpe"};

std::string VocabularyFile(std::string_view side) { return StrCat(side, "_vocabulary.txt"); }
std::string PiecesFile(std::string_view side) { return StrCat(side, "_pieces.model"); }

// The words of a text with a blank between, the form that pieces are cut from.
std::string WordsOf(std::string_view text) { return Join(TokensOf(text, TokenKind::kWord), " "); }

}  // namespace

std::string_view NameOf(TokenKind kind) { return kKindNames.at(static_cast<size_t>(kind)); }

TokenKind ParseTokenKind(std::string_view name) {
  const auto found = std::ranges::find(kKindNames, name);
  SKIFF_ENFORCE(found != kKindNames.end(), kInvalidArgument, "tokens \"", name,
                "\": expected one of ", Join(kKindNames, ", "));
  return static_cast<TokenKind>(found - kKindNames.begin());
}

std::vector<std::string> TokensOf(std::string_view text, TokenKind kind) {
  std::vector<std::string> tokens;
  std::u32string word;
  const auto end_word = [&] {
    if (!word.empty()) tokens.push_back(EncodeUtf8(word));
    word.clear();
  };
  for (char32_t character : DecodeUtf8(text)) {
    // Reading a vocabulary's file drops a carriage return at the end of a line, so none is a token.
    if (character == U'\r') character = U' ';
    if (kind != TokenKind::kCharacter && IsWhiteSpace(character)) {
      end_word();
      continue;
    }
    word.push_back(character);
    if (kind == TokenKind::kCharacter) end_word();
  }
  end_word();
  return tokens;
}

TokenVocabulary::TokenVocabulary(TokenKind kind, std::vector<std::string> tokens,
                                 std::optional<WordPieces> pieces)
    : kind_(kind), tokens_(std::move(tokens)), pieces_(std::move(pieces)) {
  for (size_t i = 0; i < tokens_.size(); ++i) ids_.emplace(tokens_[i], static_cast<int64_t>(i));
}

TokenVocabulary TokenVocabulary::Of(std::span<const std::string> texts, TokenKind kind,
                                    int64_t size, int64_t least_count) {
  SKIFF_ENFORCE(size > std::ssize(kMarks) && least_count >= 1, kInvalidArgument, "a vocabulary of ",
                size, " tokens that are there ", least_count, " times: expected at least ",
                kMarks.size() + 1, " and 1");
  if (kind == TokenKind::kPiece) {
    SKIFF_ENFORCE(least_count == 1, kInvalidArgument, "pieces of words that are there ",
                  least_count,
                  " times: expected 1, since their counts decide which ones are learned");
    std::vector<std::string> words;
    for (const std::string& text : texts) {
      std::ranges::move(TokensOf(text, kind), std::back_inserter(words));
    }
    WordPieces pieces = WordPieces::Learn(words, size);
    return {kind, pieces.Pieces(), pieces};
  }
  std::unordered_map<std::string, int64_t> counts;
  for (const std::string& text : texts) {
    for (const std::string& token : TokensOf(text, kind)) ++counts[token];
  }
  // A mark stands for itself alone.
  for (const std::string_view mark : kMarks) counts.erase(std::string(mark));
  std::vector<std::pair<std::string, int64_t>> sorted;
  std::ranges::copy_if(counts, std::back_inserter(sorted),
                       [&](const auto& token) { return token.second >= least_count; });
  std::ranges::sort(sorted, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<std::string> tokens(kMarks.begin(), kMarks.end());
  for (const auto& [token, count] : sorted) {
    if (std::ssize(tokens) < size) tokens.push_back(token);
  }
  return {kind, std::move(tokens)};
}

TokenVocabulary TokenVocabulary::Parse(std::string_view text, const std::string& source) {
  const std::vector<std::string_view> lines = LinesOf(text);
  SKIFF_ENFORCE(
      lines.size() > kMarks.size() && std::equal(kMarks.begin(), kMarks.end(), lines.begin() + 1),
      kDataLoss, source, ": expected what a token is, then ", Join(kMarks, ", "),
      " and the other tokens, each on a line");
  TokenKind kind = TokenKind::kWord;
  try {
    kind = ParseTokenKind(lines[0]);
  } catch (const Error& error) {
    throw Error(ErrorCode::kDataLoss, StrCat(source, ", line 1: ", error.what()));
  }
  TokenVocabulary vocabulary(kind, {lines.begin() + 1, lines.end()});
  SKIFF_ENFORCE(vocabulary.ids_.size() == vocabulary.tokens_.size(), kDataLoss, source,
                ": a token is there twice");
  return vocabulary;
}

TokenVocabulary TokenVocabulary::Load(const std::string& directory, std::string_view side) {
  const std::string path = JoinPath(directory, VocabularyFile(side));
  TokenVocabulary vocabulary = Parse(ReadTextFile(path), path);
  if (vocabulary.kind_ == TokenKind::kPiece) {
    const std::string pieces_path = JoinPath(directory, PiecesFile(side));
    vocabulary.pieces_ = WordPieces::Parse(ReadFile(pieces_path), pieces_path);
    SKIFF_ENFORCE(vocabulary.pieces_->Pieces() == vocabulary.tokens_, kDataLoss, pieces_path,
                  ": its pieces aren't the tokens of ", path);
  }
  return vocabulary;
}

std::map<std::string, std::string> TokenVocabulary::Files(std::string_view side) const {
  std::map<std::string, std::string> files = {{VocabularyFile(side), Text()}};
  if (pieces_) files.emplace(PiecesFile(side), pieces_->Model());
  return files;
}

std::string TokenVocabulary::Text() const {
  std::string text = StrCat(NameOf(kind_), "\n");
  for (const std::string& token : tokens_) text += token + "\n";
  return text;
}

std::vector<int64_t> TokenVocabulary::Encode(std::string_view text) const {
  if (pieces_) {
    const std::string words = WordsOf(text);
    std::vector<int64_t> ids = pieces_->Encode(words);
    // "▁" alone is a blank to SentencePiece. A sentence with words has a token all the same.
    if (ids.empty() && !words.empty()) ids = {kUnknownId};
    return ids;
  }
  std::vector<int64_t> ids;
  for (const std::string& token : TokensOf(text, kind_)) {
    const auto found = ids_.find(token);
    const bool is_known = found != ids_.end() && found->second > kUnknownId;
    ids.push_back(is_known ? found->second : kUnknownId);
  }
  return ids;
}

std::string TokenVocabulary::Decode(std::span<const int64_t> ids) const {
  ids = ids.first(static_cast<size_t>(std::ranges::find(ids, kEndId) - ids.begin()));
  for (const int64_t id : ids) {
    SKIFF_ENFORCE(id >= 0 && id < size(), kOutOfRange, "the id ", id,
                  ": expected one of a vocabulary of ", size());
  }
  if (pieces_) return WordsOf(pieces_->Decode(ids));
  std::vector<std::string> tokens;
  for (const int64_t id : ids) tokens.push_back(token(id));
  return Join(tokens, kind_ == TokenKind::kWord ? " " : "");
}

std::string VocabularyChecksum(const TokenVocabulary& source, const TokenVocabulary& target) {
  uint32_t checksum = 0;
  for (const auto& files : {source.Files(kSourceSide), target.Files(kTargetSide)}) {
    for (const auto& [name, contents] : files) {
      checksum = Crc32(checksum, contents.data(), std::ssize(contents));
    }
  }
  return Crc32Text(checksum);
}

}  // namespace skiff::text
