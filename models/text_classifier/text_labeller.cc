#include "models/text_classifier/text_labeller.h"

#include <cstdint>
#include <span>

#include "framework/io/file.h"
#include "framework/training/sequence_reader.h"
#include "models/text_classifier/text_classifier.h"

namespace skiff::models {

TextLabeller::TextLabeller(const std::string& model_directory)
    : vocabulary_(text::ReadVocabulary(JoinPath(model_directory, kVocabularyFile))),
      tokenizer_(&vocabulary_),
      model_(model_directory) {
  model_.CheckIs("a text classifier", {training::SequenceReader::kIds}, 1);
  model_.Compile();
}

std::vector<std::vector<float>> TextLabeller::Classify(const std::vector<std::string>& texts) {
  std::vector<int64_t> ids, lengths;
  for (const std::string& text : texts) {
    std::vector<text::TokenId> tokens = tokenizer_.Encode(text).ids;
    if (tokens.empty()) tokens.push_back(vocabulary_.unknown());
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    lengths.push_back(std::ssize(tokens));
  }
  if (texts.empty()) return {};
  Tensor feed = Tensor::FromValues<int64_t>({std::ssize(ids)}, ids);
  feed.set_lod({OffsetsOf(lengths)});
  const ModelOutput found = model_.Run({{training::SequenceReader::kIds, feed}})[0];
  const std::vector<int64_t> dims = {std::ssize(texts), -1};
  const std::span<const float> values = found.Floats("probabilities", dims, 0, kMostProbability);
  std::vector<std::vector<float>> probabilities;
  const auto classes = static_cast<std::ptrdiff_t>(found.shape()[1]);
  for (auto at = values.begin(); at != values.end(); at += classes)
    probabilities.emplace_back(at, at + classes);
  return probabilities;
}

}  // namespace skiff::models
