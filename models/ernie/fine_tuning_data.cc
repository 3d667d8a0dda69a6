#include "models/ernie/fine_tuning_data.h"

#include <vector>

#include "framework/base/error.h"
#include "framework/text/tokenizer.h"
#include "framework/training/sample_reader.h"
#include "models/ernie/model_directory.h"

namespace skiff::models {
namespace {

text::LabelledParts ReadParts(const FineTuningDataOptions& options) {
  SKIFF_ENFORCE(!options.data.empty(), kInvalidArgument,
                "data \"\": expected a file of labels and texts");
  return text::ReadLabelledParts(options.data, options.held_back);
}

text::Vocabulary MakeVocabulary(const FineTuningDataOptions& options,
                                const std::vector<text::LabelledText>& texts) {
  if (!options.initial_model.empty()) return ReadErnieVocabulary(options.initial_model);
  if (!options.vocabulary_file.empty()) return text::ReadVocabulary(options.vocabulary_file);
  return text::VocabularyOf(texts, options.vocabulary_size, options.data);
}

text::ClassificationSource MakeSource(const text::Vocabulary& vocabulary,
                                      const std::vector<text::LabelledText>& texts,
                                      const FineTuningDataOptions& options) {
  return text::ClassificationSource(text::Tokenizer(&vocabulary), texts,
                                    {.length = options.length, .tail_tokens = options.tail_tokens});
}

}  // namespace

FineTuningData::FineTuningData(const FineTuningDataOptions& options)
    : options_(options),
      parts_(ReadParts(options)),
      vocabulary_(MakeVocabulary(options, parts_.train)),
      train_(MakeSource(vocabulary_, parts_.train, options)),
      validation_(MakeSource(vocabulary_, parts_.held_back, options)) {}

std::string FineTuningData::extent() const {
  return StrCat(train_.size(), " to train, ", validation_.size(), " to validate, ", classes(),
                " classes, ", train_.truncated() + validation_.truncated(), " texts cut to ",
                options_.length, " tokens");
}

std::unique_ptr<training::Reader> FineTuningData::TrainReader() const {
  return std::make_unique<training::SampleReader>(
      &train_, training::SampleReaderOptions{.batch_size = options_.batch_size,
                                             .shuffle = true,
                                             .drop_last = true,
                                             .seed = options_.seed});
}

std::unique_ptr<training::Reader> FineTuningData::ValidationReader() const {
  return std::make_unique<training::SampleReader>(
      &validation_, training::SampleReaderOptions{.batch_size = options_.batch_size});
}

}  // namespace skiff::models
