// Sentences whose words have tags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace skiff::models {

struct TaggedSentence {
  std::vector<std::string> words = {};
  std::vector<std::string> tags = {};  // one for each: "B-place", "I-place", "O"
  // Where the first word is: each further one is in the next line.
  std::string path = {};
  int64_t line = 0;
};
// Returns "file:line" of a word, for messages.
std::string WhereIs(const TaggedSentence& sentence, size_t word);

// Reads a file in the format of CoNLL's shared tasks: a word in each line, with its tag in the last
// of the columns, which blanks or tabs separate; a blank line ends a sentence. Lines that begin
// with -DOCSTART- are left out. Throws an Error: what ReadTextFile throws; kDataLoss, with file and
// line, for a line of a single column, and for a file without sentences.
std::vector<TaggedSentence> ReadConll(const std::string& path);

}  // namespace skiff::models
