#include "framework/text/vocabulary.h"

#include <algorithm>
#include <iostream>
#include <limits>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/io/file.h"
#include "framework/io/text_lines.h"
#include "framework/text/unicode.h"

namespace skiff::text {
namespace {

struct NumberedToken {
  std::string_view token;
  int64_t id = 0;
};

// The line "<token>\t<id>". ERNIE's vocabulary has no token with a tab, so the last one separates.
NumberedToken ParseNumbered(std::string_view line, size_t count, const std::string& where) {
  const size_t tab = line.rfind('\t');
  SKIFF_ENFORCE(tab != std::string_view::npos, kDataLoss, where, ": \"", line,
                "\" has no tab: expected token, tab, id as in the first line");
  const std::string_view digits = line.substr(tab + 1);
  const auto id = ParseNumber<int64_t>(digits);
  SKIFF_ENFORCE(id.has_value(), kDataLoss, where, ": \"", digits, "\" is no id");
  SKIFF_ENFORCE(*id >= 0 && *id < static_cast<int64_t>(count), kDataLoss, where, ": id ", *id,
                " of \"", line.substr(0, tab), "\": the file has ", count,
                " tokens, so the ids have to be 0 to ", count - 1);
  return {line.substr(0, tab), *id};
}

std::vector<std::string> NumberedTokens(const std::vector<std::string_view>& lines,
                                        const std::string& path) {
  std::vector<std::string> tokens(lines.size());
  std::vector<size_t> line_of(lines.size(), 0);  // counted from 1
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string where = StrCat(path, ":", i + 1);
    const auto [token, id] = ParseNumbered(lines[i], lines.size(), where);
    const auto index = static_cast<size_t>(id);
    SKIFF_ENFORCE(line_of[index] == 0, kDataLoss, where, ": id ", id, " of \"", token,
                  "\" belongs to \"", tokens[index], "\" in line ", line_of[index]);
    tokens[index] = token;
    line_of[index] = i + 1;
  }
  return tokens;
}

std::vector<std::string> PlainTokens(const std::vector<std::string_view>& lines,
                                     const std::string& path) {
  std::vector<std::string> tokens;
  tokens.reserve(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    SKIFF_ENFORCE(lines[i].find('\t') == std::string_view::npos, kDataLoss, path, ":", i + 1,
                  ": \"", lines[i], "\" has a tab: expected a token alone, as in the first line");
    tokens.emplace_back(lines[i]);
  }
  return tokens;
}

void WarnOfRepeated(const Vocabulary& vocabulary, const std::string& path) {
  int64_t repeated = 0;
  std::string first;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const TokenId last = *vocabulary.Find(vocabulary.token(id));
    if (last == id) continue;
    if (++repeated == 1) {
      first =
          StrCat("\"", vocabulary.token(id), "\" is there twice, as id ", id, " and as id ", last);
    }
  }
  if (repeated == 0) return;
  std::cerr << "warning: " << path << ": " << first << ": the last one counts";
  if (repeated > 1) std::cerr << " (and " << repeated - 1 << " more such ids)";
  std::cerr << std::endl;
}

}  // namespace

Vocabulary::Vocabulary(std::vector<std::string> tokens, const std::string& source)
    : tokens_(std::move(tokens)) {
  SKIFF_ENFORCE(!tokens_.empty(), kDataLoss, source, " has no tokens");
  SKIFF_ENFORCE(size() <= std::numeric_limits<TokenId>::max(), kOutOfRange, source, " has ", size(),
                " tokens");
  AddIds(source);
  pad_ = Required(kPadToken, source);
  unknown_ = Required(kUnknownToken, source);
  cls_ = Required(kClsToken, source);
  sep_ = Required(kSepToken, source);
  mask_ = Required(kMaskToken, source);
}

void Vocabulary::AddIds(const std::string& source) {
  ids_.reserve(tokens_.size());
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& token = tokens_[i];
    SKIFF_ENFORCE(!token.empty(), kDataLoss, source, ": the token of id ", i, " is empty");
    SKIFF_ENFORCE(IsValidUtf8(token), kDataLoss, source, ": the token of id ", i,
                  " is no valid UTF-8");
    SKIFF_ENFORCE(token.find_first_of("\t\r\n") == std::string::npos, kDataLoss, source,
                  ": the token of id ", i, " holds a tab or a line end");
    ids_[token] = static_cast<TokenId>(i);
    longest_token_bytes_ = std::max(longest_token_bytes_, static_cast<int64_t>(token.size()));
  }
}

TokenId Vocabulary::Required(std::string_view token, const std::string& source) const {
  const std::optional<TokenId> id = Find(token);
  SKIFF_ENFORCE(id.has_value(), kNotFound, source, " has no token ", token, ": expected ",
                Join(kSpecialTokens, ", "), " among its ", size(), " tokens");
  return *id;
}

const std::string& Vocabulary::token(TokenId id) const {
  SKIFF_ENFORCE(id >= 0 && id < size(), kOutOfRange, "token id ", id, ": expected 0 to ",
                size() - 1);
  return tokens_[static_cast<size_t>(id)];
}

std::optional<TokenId> Vocabulary::Find(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::string Vocabulary::Text() const {
  std::string text;
  for (const std::string& token : tokens_) {
    text += token;
    text += '\n';
  }
  return text;
}

Vocabulary ReadVocabulary(const std::string& path) {
  const std::string text = ReadTextFile(path);
  const std::vector<std::string_view> lines = LinesOf(text);
  SKIFF_ENFORCE(!lines.empty(), kDataLoss, path, " is empty: expected a vocabulary");
  const bool numbered = lines[0].find('\t') != std::string_view::npos;
  Vocabulary vocabulary(numbered ? NumberedTokens(lines, path) : PlainTokens(lines, path), path);
  WarnOfRepeated(vocabulary, path);
  return vocabulary;
}

void SaveVocabulary(const Vocabulary& vocabulary, const std::string& path) {
  AtomicWriteFile(path, vocabulary.Text());
}

}  // namespace skiff::text
