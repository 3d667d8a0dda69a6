// The training data of a translation model: pairs of texts, of which some are held back to validate
// on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/text/pair_reader.h"
#include "framework/text/parallel_text.h"
#include "framework/text/token_vocabulary.h"
#include "framework/training/reader.h"

namespace skiff::models {

// The name of the data that needs no file.
inline constexpr const char* kGeneratedDates = "dates";

struct TranslationDataOptions {
  // dates, a table of pairs (ReadPairTable), or two files with a comma between (ReadParallelText)
  std::string data = kGeneratedDates;
  // Pairs to validate on, given as `data` is; empty: the last of `data`, a share of held_back.
  std::string validation;
  double held_back = 0.1;
  std::string tokens = "characters";  // ParseTokenKind
  int64_t vocabulary_size = 8000;     // of each side, at most
  int64_t least_count = 1;            // TokenVocabulary::Of
  int64_t longest = 100;              // pairs with more tokens on a side are left out
  int64_t batch_size = 32;
  int64_t most_tokens = 4096;
  uint64_t seed = 1;
};

class TranslationData {
 public:
  // Throws an Error: kInvalidArgument if there is nothing to train on, and what ReadPairTable,
  // ReadParallelText, HoldBackLast, TokenVocabulary::Of and PairReader throw.
  explicit TranslationData(const TranslationDataOptions& options);

  const text::TokenVocabulary& source() const { return source_; }
  const text::TokenVocabulary& target() const { return target_; }
  // The files of both vocabularies beside a saved model.
  std::map<std::string, std::string> VocabularyFiles() const;
  // In a few words, such as "900 to train, 100 to validate".
  std::string extent() const;
  // Readers of PairReader's feeds. They read the data of this object.
  std::unique_ptr<training::Reader> TrainReader() const;
  std::unique_ptr<training::Reader> ValidationReader() const;

 private:
  TranslationDataOptions options_;
  std::vector<text::TextPair> held_back_;
  std::vector<text::TextPair> pairs_;
  text::TokenVocabulary source_;
  text::TokenVocabulary target_;
  text::TokenPairs train_;
  text::TokenPairs validation_;
  size_t left_out_ = 0;
};

// Returns the pairs that `data` names. Throws the Errors of the functions that read the pairs.
std::vector<text::TextPair> ReadPairs(const std::string& data, uint64_t seed);

}  // namespace skiff::models
