// What ERNIE is fine-tuned on: labelled texts, of which some are held back to validate on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "framework/text/classification_source.h"
#include "framework/text/vocabulary.h"
#include "framework/training/reader.h"

namespace skiff::models {

struct FineTuningDataOptions {
  std::string data = {};   // file of labelled texts (ReadLabelledParts)
  double held_back = 0.1;  // the share of each class to validate on
  // Whose vocabulary is used. Empty: the vocabulary of vocabulary_file, or a vocabulary made from
  // the training texts.
  std::string initial_model = {};
  std::string vocabulary_file = {};
  int64_t vocabulary_size = 8000;  // of a vocabulary made from texts
  int64_t length = 64;             // as in ClassificationOptions
  int64_t tail_tokens = 0;
  int64_t batch_size = 32;
  uint64_t seed = 1;
};

class FineTuningData {
 public:
  // Throws an Error (kInvalidArgument) without a file, and what ReadLabelledParts, ReadVocabulary
  // and ClassificationSource throw.
  explicit FineTuningData(const FineTuningDataOptions& options);

  const text::Vocabulary& vocabulary() const { return vocabulary_; }
  int64_t classes() const { return parts_.classes; }
  // In a few words, such as "900 to train, 100 to validate, 2 classes, 10 texts cut to 64 tokens".
  std::string extent() const;
  // Readers of ClassificationSource's feeds. They read the data of this object.
  std::unique_ptr<training::Reader> TrainReader() const;
  std::unique_ptr<training::Reader> ValidationReader() const;

 private:
  FineTuningDataOptions options_;
  text::LabelledParts parts_;
  text::Vocabulary vocabulary_;
  text::ClassificationSource train_;
  text::ClassificationSource validation_;
};

}  // namespace skiff::models
