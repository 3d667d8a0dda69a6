// The training data of a tagger: sentences whose words have tags, some of which are to validate on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/text/token_vocabulary.h"
#include "framework/training/reader.h"
#include "models/tagger/tag_reader.h"
#include "models/tagger/tag_set.h"
#include "models/tagger/tagged_text.h"

namespace skiff::models {

// The name of the data that needs no files.
inline constexpr const char* kGeneratedNames = "names";
// The side of TokenVocabulary's file beside a saved model.
inline constexpr const char* kWordSide = "word";

struct TaggerDataOptions {
  // names (generated), or conll:DIR: train.txt and valid.txt there, or these with .gz (ReadConll)
  std::string data = kGeneratedNames;
  int64_t sentences = 5000;  // that are generated to train on; a fifth as many to validate on
  int64_t vocabulary_size = 50000;  // at most so many words
  int64_t least_count = 2;          // rarer words are read as unknown
  int64_t batch_size = 32;
  int64_t most_tokens = 4096;  // words of a batch; longer sentences are cut
  uint64_t seed = 1;
};

class TaggerData {
 public:
  // Throws an Error: kInvalidArgument for other data; what ReadConll, ParseTag, GenerateNames,
  // TokenVocabulary::Of and TagReader throw; kDataLoss, with file and line, for a tag to validate
  // on that isn't among those to train on.
  explicit TaggerData(const TaggerDataOptions& options);

  const TagSet& tags() const { return tags_; }
  const text::TokenVocabulary& words() const { return words_; }
  // The files beside a saved model that predict reads.
  std::map<std::string, std::string> Files() const;
  // The F1 on the sentences to validate on of giving each word the tag that it most often has in
  // the others, and an unknown word the tag of most rare words.
  double most_frequent_tag_f1() const { return baseline_; }
  // In a few words, such as "5000 to train, 1000 to validate, 3 types of entities, 702 words".
  std::string extent() const;
  // Readers of TagReader's feeds. They read the data of this object.
  std::unique_ptr<training::Reader> TrainReader() const;
  std::unique_ptr<training::Reader> ValidationReader() const;

 private:
  struct Parts {
    std::vector<TaggedSentence> train;
    std::vector<TaggedSentence> validation;
  };

  static Parts ReadParts(const TaggerDataOptions& options);
  TaggedIds IdsOf(const std::vector<TaggedSentence>& sentences) const;

  TaggerDataOptions options_;
  Parts parts_;
  TagSet tags_;
  text::TokenVocabulary words_;
  TaggedIds train_;
  TaggedIds validation_;
  double baseline_ = 0;
};

// Returns the id of each word: kUnknownId for a word that the vocabulary lacks.
std::vector<int64_t> IdsOfWords(const text::TokenVocabulary& vocabulary,
                                const std::vector<std::string>& words);

}  // namespace skiff::models
