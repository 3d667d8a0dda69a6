// Parallel text: sentences and their translations.
#pragma once

#include <string>
#include <vector>

namespace skiff::text {

struct TextPair {
  std::string source = {};
  std::string target = {};
};

// Reads two files, plain or compressed with gzip, whose lines with the same number belong together.
// Throws an Error: kNotFound, kIo and kDataLoss as ReadTextFile; kDataLoss if they have
// different numbers of lines, if only one line of a pair is blank (of white space alone), and if
// there is no pair. Pairs of blank lines are left out. Malformed UTF-8 stays as it is.
std::vector<TextPair> ReadParallelText(const std::string& source_path,
                                       const std::string& target_path);

// Reads a table, plain or compressed with gzip, with a sentence in the first column of each line
// and its translation in the second; tabs separate columns. Throws likewise, and an Error
// (kDataLoss) with path and line for a line without a tab.
std::vector<TextPair> ReadPairTable(const std::string& path);

}  // namespace skiff::text
