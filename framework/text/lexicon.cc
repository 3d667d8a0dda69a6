#include "framework/text/lexicon.h"

#include <algorithm>

#include "framework/base/error.h"
#include "framework/io/text_lines.h"

namespace skiff::text {

Lexicon::Lexicon(const Tokenizer& tokenizer, std::span<const std::string> entries) {
  for (const std::string& entry : entries) {
    const TokenSequence tokens = tokenizer.Encode(entry);
    const bool is_known = std::find(tokens.roles.begin(), tokens.roles.end(),
                                    TokenRole::kSpecial) == tokens.roles.end();
    if (is_known && tokens.size() > 0) {
      Add(tokens.ids);
    } else {
      skipped_.push_back(entry);
    }
  }
  SKIFF_ENFORCE(size_ > 0, kInvalidArgument, "the vocabulary has the words of none of the ",
                entries.size(), " entries of the lexicon");
}

void Lexicon::Add(const std::vector<TokenId>& ids) {
  size_t node = 0;
  for (const TokenId id : ids) {
    const auto [entry, is_new] = nodes_[node].next.emplace(id, nodes_.size());
    node = entry->second;
    if (is_new) nodes_.emplace_back();
  }
  if (!nodes_[node].ends_entry) ++size_;
  nodes_[node].ends_entry = true;
}

int64_t Lexicon::LongestMatch(const TokenSequence& tokens, int64_t first) const {
  const auto begin = static_cast<size_t>(first);
  if (tokens.roles[begin] != TokenRole::kWordStart) return 0;
  size_t longest = 0;
  size_t node = 0;
  for (size_t i = begin; i < tokens.ids.size(); ++i) {
    const auto found = nodes_[node].next.find(tokens.ids[i]);
    if (found == nodes_[node].next.end()) break;
    node = found->second;
    const bool word_ends =
        i + 1 == tokens.ids.size() || tokens.roles[i + 1] != TokenRole::kInsideWord;
    if (nodes_[node].ends_entry && word_ends) longest = i + 1 - begin;
  }
  return static_cast<int64_t>(longest);
}

std::vector<std::string> ReadLexiconEntries(const std::string& path) {
  const std::string text = ReadTextFile(path);
  std::vector<std::string> entries;
  for (const std::string_view line : LinesOf(text)) {
    if (line.find_first_not_of(" \t") != std::string_view::npos) entries.emplace_back(line);
  }
  SKIFF_ENFORCE(!entries.empty(), kDataLoss, path, " holds no entries of a lexicon");
  return entries;
}

}  // namespace skiff::text
