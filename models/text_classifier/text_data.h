// The training data of a text classifier: labelled texts, of which some are held back to validate
// on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "framework/text/classification_source.h"
#include "framework/text/vocabulary.h"
#include "framework/training/reader.h"
#include "framework/training/sequence_reader.h"

namespace skiff::models {

// The name of the data that needs no file.
inline constexpr const char* kGeneratedReviews = "reviews";

struct TextDataOptions {
  std::string data = kGeneratedReviews;  // or a file of labelled texts
  double held_back = 0.1;                // the share of each class to validate on
  int64_t vocabulary_size = 8000;        // at most so many tokens
  int64_t batch_size = 32;               // as in SequenceReaderOptions, and the next
  int64_t most_tokens = 4096;
  double word_dropout = 0;  // the share of the training tokens that each epoch reads as unknown
  uint64_t seed = 1;
};

class TextData {
 public:
  // Throws an Error: kInvalidArgument for a word_dropout outside [0, 1); what GenerateReviews,
  // ReadLabelledParts, BuildVocabulary and SequenceReader throw.
  explicit TextData(const TextDataOptions& options);

  const text::Vocabulary& vocabulary() const { return vocabulary_; }
  int64_t classes() const { return parts_.classes; }
  // The share of held-back texts that naive Bayes classifies right, by words without order
  // (multinomial, add-one smoothing: Manning, Raghavan, Schütze, Introduction to Information
  // Retrieval, 2008, section 13.2).
  double naive_bayes_accuracy() const { return naive_bayes_accuracy_; }
  // In a few words, such as "900 to train, 100 to validate, 2 classes (naive Bayes: 74.0 %)".
  std::string extent() const;
  // Readers of SequenceReader's feeds. They read the data of this object.
  std::unique_ptr<training::Reader> TrainReader() const;
  std::unique_ptr<training::Reader> ValidationReader() const;

 private:
  TextDataOptions options_;
  text::LabelledParts parts_;
  text::Vocabulary vocabulary_;
  training::LabelledSequences train_;
  training::LabelledSequences validation_;
  double naive_bayes_accuracy_ = 0;
};

}  // namespace skiff::models
