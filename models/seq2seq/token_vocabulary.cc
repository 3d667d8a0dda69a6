#include "models/seq2seq/token_vocabulary.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "models/common/text/text_lines.h"
#include "models/common/text/unicode.h"

namespace skiff::models {
namespace {

const std::vector<std::string> kMarks = {"<s>", "</s>", "<unk>"};

}  // namespace

std::string_view NameOf(TokenKind kind) {
  return kind == TokenKind::kWord ? "words" : "characters";
}

TokenKind ParseTokenKind(std::string_view name) {
  for (const TokenKind kind : {TokenKind::kWord, TokenKind::kCharacter}) {
    if (name == NameOf(kind)) return kind;
  }
  Throw(ErrorCode::kInvalidArgument, "tokens \"", name, "\": expected words or characters");
}

std::vector<std::string> TokensOf(std::string_view text, TokenKind kind) {
  std::vector<std::string> tokens;
  std::u32string word;
  const auto end_word = [&] {
    if (!word.empty()) tokens.push_back(text::EncodeUtf8(word));
    word.clear();
  };
  for (const char32_t character : text::DecodeUtf8(text)) {
    if (kind == TokenKind::kWord && text::IsWhiteSpace(character)) {
      end_word();
      continue;
    }
    word.push_back(character);
    if (kind == TokenKind::kCharacter) end_word();
  }
  end_word();
  return tokens;
}

TokenVocabulary::TokenVocabulary(TokenKind kind, std::vector<std::string> tokens)
    : kind_(kind), tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) ids_.emplace(tokens_[i], static_cast<int64_t>(i));
}

TokenVocabulary TokenVocabulary::Of(std::span<const std::string> texts, TokenKind kind,
                                    int64_t size, int64_t least_count) {
  SKIFF_ENFORCE(size > std::ssize(kMarks) && least_count >= 1, kInvalidArgument, "a vocabulary of ",
                size, " tokens that are there ", least_count, " times: expected at least ",
                kMarks.size() + 1, " and 1");
  std::unordered_map<std::string, int64_t> counts;
  for (const std::string& text : texts) {
    for (const std::string& token : TokensOf(text, kind)) ++counts[token];
  }
  // A mark stands for itself alone.
  for (const std::string& mark : kMarks) counts.erase(mark);
  std::vector<std::pair<std::string, int64_t>> sorted;
  std::ranges::copy_if(counts, std::back_inserter(sorted),
                       [&](const auto& token) { return token.second >= least_count; });
  std::ranges::sort(sorted, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<std::string> tokens = kMarks;
  for (const auto& [token, count] : sorted) {
    if (std::ssize(tokens) < size) tokens.push_back(token);
  }
  return {kind, std::move(tokens)};
}

TokenVocabulary TokenVocabulary::Parse(std::string_view text, const std::string& source) {
  const std::vector<std::string_view> lines = text::LinesOf(text);
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

std::string TokenVocabulary::Text() const {
  std::string text = StrCat(NameOf(kind_), "\n");
  for (const std::string& token : tokens_) text += token + "\n";
  return text;
}

std::vector<int64_t> TokenVocabulary::Encode(std::string_view text) const {
  std::vector<int64_t> ids;
  for (const std::string& token : TokensOf(text, kind_)) {
    const auto found = ids_.find(token);
    const bool is_known = found != ids_.end() && found->second > kUnknown;
    ids.push_back(is_known ? found->second : kUnknown);
  }
  return ids;
}

std::string TokenVocabulary::Decode(std::span<const int64_t> ids) const {
  std::string text;
  for (const int64_t id : ids) {
    SKIFF_ENFORCE(id >= 0 && id < size(), kOutOfRange, "the id ", id,
                  ": expected one of a vocabulary of ", size());
    if (id == kEnd) break;
    if (!text.empty() && kind_ == TokenKind::kWord) text += " ";
    text += token(id);
  }
  return text;
}

}  // namespace skiff::models
