#include "models/tagger/tagged_text.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "framework/io/text_lines.h"

namespace skiff::models {
namespace {

constexpr std::string_view kBlanks = " \t";

// Returns the first and the last column of a line, without the blanks around it.
std::pair<std::string_view, std::string_view> OuterColumns(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
  const size_t first_end = line.find_first_of(kBlanks);
  if (first_end == line.npos) return {line, {}};
  return {line.substr(0, first_end), line.substr(line.find_last_of(kBlanks) + 1)};
}

}  // namespace

std::string WhereIs(const TaggedSentence& sentence, size_t word) {
  return StrCat(sentence.path, ":", sentence.line + static_cast<int64_t>(word));
}

std::vector<TaggedSentence> ReadConll(const std::string& path) {
  const std::string text = ReadTextFile(path);
  std::vector<TaggedSentence> sentences;
  bool is_inside = false;
  int64_t number = 0;
  for (const std::string_view line : LinesOf(text)) {
    const std::string where = StrCat(path, ":", ++number);
    const auto [word, tag] = OuterColumns(line);
    if (word.empty() || word == "-DOCSTART-") {
      is_inside = false;
      continue;
    }
    SKIFF_ENFORCE(!tag.empty(), kDataLoss, where, " has a single column, \"", word,
                  "\": expected a word and, in the last column, its tag");
    if (!is_inside) sentences.push_back({.path = path, .line = number});
    is_inside = true;
    sentences.back().words.emplace_back(word);
    sentences.back().tags.emplace_back(tag);
  }
  SKIFF_ENFORCE(!sentences.empty(), kDataLoss, path, " has no sentences");
  return sentences;
}

}  // namespace skiff::models
