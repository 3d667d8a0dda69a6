// Makes a WordPiece vocabulary from texts.
//
//   WordCounts words;
//   for (const std::string& line : lines) CountWords(line, {}, &words);
//   const Vocabulary vocabulary = BuildVocabulary(words, {.size = 8000});
//
// Merges of the most frequent pair of pieces, as in R. Sennrich, B. Haddow, A. Birch, "Neural
// Machine Translation of Rare Words with Subword Units" (2016); the trainer of the package
// `tokenizers` makes its WordPiece vocabularies the same way.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "framework/text/basic_tokenizer.h"
#include "framework/text/vocabulary.h"

namespace skiff::text {

using WordCounts = std::map<std::string, int64_t>;

// Adds the words of a text.
void CountWords(std::string_view text, const BasicTokenizerOptions& options, WordCounts* words);

struct VocabularyOptions {
  int64_t size = 8000;           // at most so many tokens
  int64_t least_pair_count = 2;  // rarer pairs are not merged
  // So many characters, the most frequent ones, are in the vocabulary. A word with another one is
  // left out.
  int64_t alphabet_size = 1000;
  // Characters that are always in the vocabulary, so that words of such characters are never
  // unknown.
  std::string required_alphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
};

// Returns, in this order: the special tokens; the alphabet, sorted by code point, each character
// as a word's beginning and, if it is required or found there, as its continuation; the merged
// pieces, the most frequent first. A function of its arguments alone. Throws Error
// (kInvalidArgument) if there are no words, for a count below 1, and if the size has no room for
// the special tokens and the alphabet.
Vocabulary BuildVocabulary(const WordCounts& words, const VocabularyOptions& options);
// The same. The message of an Error starts with the source of the words.
Vocabulary BuildVocabulary(const WordCounts& words, const VocabularyOptions& options,
                           std::string_view source);

}  // namespace skiff::text
