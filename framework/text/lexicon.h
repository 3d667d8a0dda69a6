// Phrases and names that the masking keeps together.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "framework/text/tokenizer.h"

namespace skiff::text {

// Entries as sequences of word pieces. Thread-safe.
class Lexicon {
 public:
  // Entries with a word that the vocabulary doesn't have, or of no word at all, are left out: they
  // can't be recognised. Whoever makes a lexicon reports skipped(). Throws Error
  // (kInvalidArgument) if no entry remains.
  Lexicon(const Tokenizer& tokenizer, std::span<const std::string> entries);

  // Returns the number of tokens of the longest entry that starts at `first`, 0 if none does. An
  // entry consists of whole words: "new york" isn't found in "new yorkers".
  int64_t LongestMatch(const TokenSequence& tokens, int64_t first) const;

  int64_t size() const { return size_; }
  const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  struct Node {
    std::map<TokenId, size_t> next;  // indices of nodes
    bool ends_entry = false;
  };

  void Add(const std::vector<TokenId>& ids);

  std::vector<Node> nodes_ = std::vector<Node>(1);  // a trie, from the first on
  int64_t size_ = 0;
  std::vector<std::string> skipped_;
};

// Reads entries, one a line, from a plain or gzip file; empty lines count for nothing. Throws Error
// as ReadTextFile; kDataLoss if there are no entries.
std::vector<std::string> ReadLexiconEntries(const std::string& path);

}  // namespace skiff::text
