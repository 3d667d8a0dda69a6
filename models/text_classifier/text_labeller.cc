#include "models/text_classifier/text_labeller.h"

#include <utility>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "framework/io/inference_model.h"
#include "framework/training/sequence_reader.h"
#include "models/text_classifier/text_classifier.h"

namespace skiff::models {

TextLabeller::TextLabeller(const std::string& model_directory)
    : vocabulary_(text::ReadVocabulary(JoinPath(model_directory, kVocabularyFile))),
      tokenizer_(&vocabulary_) {
  InferenceModel model = LoadInferenceModel(model_directory, &executor_.scope(),
                                            {.params_filename = kCombinedParamsFile});
  const bool is_classifier =
      model.feed_names == std::vector<std::string>{training::SequenceReader::kIds} &&
      model.fetch_names.size() == 1;
  SKIFF_ENFORCE(is_classifier, kInvalidArgument, model_directory, ": a model of ",
                Join(model.feed_names, ", "), ": expected a text classifier, which reads ",
                training::SequenceReader::kIds);
  program_ = std::move(model.program);
  probabilities_ = model.fetch_names[0];
  compiled_ = std::make_unique<CompiledProgram>(executor_.Compile(*program_));
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
  const Tensor found =
      compiled_->Run({{training::SequenceReader::kIds, feed}}, {probabilities_})[0];
  const std::vector<float> values = found.ToVector<float>();
  std::vector<std::vector<float>> probabilities;
  const auto classes = static_cast<std::ptrdiff_t>(found.shape()[1]);
  for (auto at = values.begin(); at != values.end(); at += classes)
    probabilities.emplace_back(at, at + classes);
  return probabilities;
}

}  // namespace skiff::models
