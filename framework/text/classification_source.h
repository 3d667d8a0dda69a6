// Labelled texts as samples, for fine-tuning a classifier.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/text/instance.h"
#include "framework/text/tokenizer.h"
#include "framework/text/vocabulary.h"
#include "framework/training/sample_source.h"

namespace skiff::text {

inline constexpr const char* kLabel = "label";  // [N, 1] int64

struct LabelledText {
  int64_t label = 0;
  std::string text = {};
};

// Reads a table, plain or compressed with gzip, with a label in the first column of each line and a
// text in the last; tabs separate columns, and there may be columns between. Throws Error:
// kNotFound, kIo, kDataLoss as ReadTextFile; kDataLoss with path and line for a line without a tab
// or whose label is no whole number from 0 to 9999, and for an empty file.
std::vector<LabelledText> ReadLabelledTexts(const std::string& path);

// Returns the number of classes, one more than the highest label. Throws Error (kDataLoss), which
// starts with the source of the texts, if a lower label is never there, or there is only one.
int64_t CountClasses(std::span<const LabelledText> texts, std::string_view source);

struct LabelledParts {
  int64_t classes = 0;
  std::vector<LabelledText> train = {};
  std::vector<LabelledText> held_back = {};
};

// Reads such a table and holds back the last texts of each class (HoldBackLastOfEachClass), so that
// a file may be sorted by class. Pre-training and fine-tuning both hold back by this function: a
// model doesn't learn from texts that it is validated on later. Throws the Errors of
// ReadLabelledTexts, CountClasses and HoldBackLast.
LabelledParts ReadLabelledParts(const std::string& path, double fraction);

// Returns a vocabulary of at most `size` tokens, made from the words of the texts. Throws the
// Errors of BuildVocabulary, with the source of the texts at the start of the message.
Vocabulary VocabularyOf(std::span<const LabelledText> texts, int64_t size, std::string_view source);

struct ClassificationOptions {
  int64_t length = 128;  // L; [CLS] text [SEP], then padding
  // A text that is too long keeps so many tokens from its end and fills the rest from its start
  // (Sun et al., "How to Fine-Tune BERT for Text Classification?", 2019, section 5.3.1).
  int64_t tail_tokens = 0;
  int64_t task_id = 0;
};

// Feeds token_ids, sentence_ids, position_ids, task_ids and input_mask as in instance.h, and label.
// A sample is the same in every epoch.
class ClassificationSource final : public training::SampleSource {
 public:
  // Tokenizes all texts, after which neither they nor the tokenizer are needed. Throws Error
  // (kInvalidArgument) for a length below 3, unless 0 <= tail_tokens <= length - 2, and if there
  // are no texts.
  ClassificationSource(const Tokenizer& tokenizer, std::span<const LabelledText> texts,
                       const ClassificationOptions& options);

  int64_t size() const override { return static_cast<int64_t>(instances_.size()); }
  std::vector<training::FeedShape> fields() const override;
  void Read(int64_t sample, int64_t epoch, int64_t row, std::span<Tensor> fields) const override;

  // The texts that were longer than L.
  int64_t truncated() const { return truncated_; }

 private:
  TokenSequence Truncated(TokenSequence tokens);

  ClassificationOptions options_;
  TokenId pad_;
  std::vector<Instance> instances_;  // the sentence label is the label
  int64_t truncated_ = 0;
};

}  // namespace skiff::text
