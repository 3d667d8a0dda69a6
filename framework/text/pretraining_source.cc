#include "framework/text/pretraining_source.h"

#include "framework/base/error.h"
#include "framework/text/random_draws.h"
#include "framework/training/data_random.h"

namespace skiff::text {

std::vector<training::FeedShape> PretrainingFields(int64_t length, int64_t most_masked) {
  std::vector<training::FeedShape> fields = InputFields(length);
  for (training::FeedShape& field : MaskedFields(most_masked)) fields.push_back(std::move(field));
  fields.push_back({kSentenceLabel, {1}, DType::kInt64});
  return fields;
}

void WritePretrainingRow(const Instance& instance, const MaskedTokens& masked, TokenId pad,
                         int64_t row, std::span<Tensor> fields) {
  const int64_t length = fields[0].shape()[1];
  WriteInput(instance, pad, row, fields.first(kInputFields));
  WriteMasked(masked, length, row, fields.subspan(kInputFields, kMaskedFields));
  training::RowOf<int64_t>(fields[kInputFields + kMaskedFields], row)[0] = instance.sentence_label;
}

PretrainingSource::PretrainingSource(const InstanceSource* instances, const Masker* masker,
                                     const Vocabulary* vocabulary,
                                     const PretrainingOptions& options)
    : instances_(instances), masker_(masker), vocabulary_(vocabulary), options_(options) {
  SKIFF_ENFORCE(options.length >= 1, kInvalidArgument, "inputs of ", options.length,
                " tokens: expected at least 1");
}

std::vector<training::FeedShape> PretrainingSource::fields() const {
  return PretrainingFields(options_.length, masker_->options().most_masked);
}

void PretrainingSource::Read(int64_t sample, int64_t epoch, int64_t row,
                             std::span<Tensor> fields) const {
  const int64_t drawn = options_.same_every_epoch ? 0 : epoch;
  Instance instance = instances_->Read(sample, drawn);
  RandomDraws random = RandomDraws::OfSample(
      training::DataRandom(options_.seed, training::DataStream::kMasking, drawn), sample);
  const MaskedTokens masked = masker_->Mask(&instance.tokens, &random);
  WritePretrainingRow(instance, masked, vocabulary_->pad(), row, fields);
}

}  // namespace skiff::text
