#include "models/text_classifier/text_data.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/text/hold_back.h"
#include "framework/text/tokenizer.h"
#include "models/text_classifier/generated_reviews.h"

namespace skiff::models {
namespace {

TextDataOptions Checked(const TextDataOptions& options) {
  SKIFF_ENFORCE(options.word_dropout >= 0 && options.word_dropout < 1, kInvalidArgument,
                "word_dropout = ", options.word_dropout, ": expected a share in [0, 1)");
  return options;
}

text::LabelledParts ReadParts(const TextDataOptions& options) {
  if (options.data != kGeneratedReviews)
    return text::ReadLabelledParts(options.data, options.held_back);
  text::LabelledParts parts{.classes = 2, .train = GenerateReviews({}), .held_back = {}};
  parts.held_back =
      text::HoldBackLastOfEachClass(&parts.train, options.held_back, "generated reviews");
  return parts;
}

// Returns the tokens of the texts; those of a text without tokens are one unknown token. Longer
// texts than a batch may have are cut.
training::LabelledSequences SequencesOf(const text::Vocabulary& vocabulary,
                                        const std::vector<text::LabelledText>& texts,
                                        int64_t most_tokens) {
  const text::Tokenizer tokenizer(&vocabulary);
  training::LabelledSequences data;
  for (const text::LabelledText& example : texts) {
    const std::vector<text::TokenId> tokens = tokenizer.Encode(example.text).ids;
    std::vector<int64_t> ids(tokens.begin(), tokens.end());
    if (ids.empty()) ids.push_back(vocabulary.unknown());
    if (std::ssize(ids) > most_tokens) ids.resize(static_cast<size_t>(most_tokens));
    data.sequences.push_back(std::move(ids));
    data.labels.push_back(example.label);
  }
  return data;
}

// The logarithms of the probabilities of naive Bayes.
class NaiveBayes {
 public:
  NaiveBayes(const training::LabelledSequences& data, int64_t classes, int64_t vocabulary)
      : token_scores_(static_cast<size_t>(classes),
                      std::vector<double>(static_cast<size_t>(vocabulary), 1.0)),
        class_scores_(static_cast<size_t>(classes)) {
    for (size_t i = 0; i < data.sequences.size(); ++i) {
      const auto label = static_cast<size_t>(data.labels[i]);
      class_scores_[label] += 1;
      for (const int64_t id : data.sequences[i]) token_scores_[label][static_cast<size_t>(id)] += 1;
    }
    for (size_t c = 0; c < class_scores_.size(); ++c) {
      class_scores_[c] = std::log(class_scores_[c]);
      double sum = 0;
      for (const double count : token_scores_[c]) sum += count;
      for (double& score : token_scores_[c]) score = std::log(score / sum);
    }
  }

  int64_t Classify(const std::vector<int64_t>& ids) const {
    std::vector<double> scores = class_scores_;
    for (size_t c = 0; c < scores.size(); ++c) {
      for (const int64_t id : ids) scores[c] += token_scores_[c][static_cast<size_t>(id)];
    }
    return std::ranges::max_element(scores) - scores.begin();
  }

 private:
  std::vector<std::vector<double>> token_scores_;  // by class
  std::vector<double> class_scores_;
};

double NaiveBayesAccuracy(const NaiveBayes& model, const training::LabelledSequences& data) {
  int64_t right = 0;
  for (size_t i = 0; i < data.sequences.size(); ++i)
    right += model.Classify(data.sequences[i]) == data.labels[i] ? 1 : 0;
  return static_cast<double>(right) / static_cast<double>(data.sequences.size());
}

}  // namespace

TextData::TextData(const TextDataOptions& options)
    : options_(Checked(options)),
      parts_(ReadParts(options)),
      vocabulary_(text::VocabularyOf(parts_.train, options.vocabulary_size, options.data)),
      train_(SequencesOf(vocabulary_, parts_.train, options.most_tokens)),
      validation_(SequencesOf(vocabulary_, parts_.held_back, options.most_tokens)),
      naive_bayes_accuracy_(NaiveBayesAccuracy(
          NaiveBayes(train_, parts_.classes, vocabulary_.size()), validation_)) {}

std::string TextData::extent() const {
  return StrCat(train_.sequences.size(), " to train, ", validation_.sequences.size(),
                " to validate, ", classes(),
                " classes (naive Bayes: ", FormatFixed(100 * naive_bayes_accuracy_, 1), " %)");
}

std::unique_ptr<training::Reader> TextData::TrainReader() const {
  return std::make_unique<training::SequenceReader>(
      &train_, training::SequenceReaderOptions{.batch_size = options_.batch_size,
                                               .most_tokens = options_.most_tokens,
                                               .shuffle = true,
                                               .replaced = options_.word_dropout,
                                               .replacement = vocabulary_.unknown(),
                                               .seed = options_.seed});
}

std::unique_ptr<training::Reader> TextData::ValidationReader() const {
  return std::make_unique<training::SequenceReader>(
      &validation_, training::SequenceReaderOptions{.batch_size = options_.batch_size,
                                                    .most_tokens = options_.most_tokens});
}

}  // namespace skiff::models
