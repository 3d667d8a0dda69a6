// The training data of a character model: a text, of which the end is held back to validate on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/training/reader.h"
#include "models/common/alphabet.h"

namespace skiff::models {

// The name of the data that needs no file: documents about a generated world
// (models/common/world_corpus.h), one a line.
inline constexpr const char* kGeneratedWorld = "world";

struct CharDataOptions {
  std::string data = kGeneratedWorld;  // or a text file, which may be compressed with gzip
  double held_back = 0.1;              // the share of the text to validate on: its end
  int64_t batch_size = 32;             // as in StreamReaderOptions, and the next
  int64_t steps = 64;
};

class CharData {
 public:
  // Throws an Error: kInvalidArgument for an empty text and for a share that isn't in (0, 1); what
  // ReadTextFile, and StreamReader for either part, throw.
  explicit CharData(const CharDataOptions& options);

  // The characters of the whole text: one of the end that the rest doesn't have needs an id, too.
  const Alphabet& alphabet() const { return alphabet_; }
  // Mean losses on the validation part of models that count the training part, in nats per
  // character (NgramModel).
  double bigram_loss() const { return bigram_loss_; }
  double trigram_loss() const { return trigram_loss_; }
  // In a few words, such as "90000 characters to train, 10000 to validate, 65 different".
  std::string extent() const;
  // Such as "bigrams 1.8412, trigrams 0.8900".
  std::string baselines() const;
  // Readers of StreamReader's feeds. They read the data of this object.
  std::unique_ptr<training::Reader> TrainReader() const { return ReaderOf(train_); }
  std::unique_ptr<training::Reader> ValidationReader() const { return ReaderOf(validation_); }

 private:
  CharData(const CharDataOptions& options, const std::string& text);

  std::unique_ptr<training::Reader> ReaderOf(const std::vector<int64_t>& text) const;

  CharDataOptions options_;
  Alphabet alphabet_;
  std::vector<int64_t> train_;
  std::vector<int64_t> validation_;
  double bigram_loss_ = 0;
  double trigram_loss_ = 0;
};

}  // namespace skiff::models
