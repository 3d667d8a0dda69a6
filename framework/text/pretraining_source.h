// Instances with masks as the samples of a reader, for pre-training a language model.
//
//   const DocumentInstances instances(&documents, &vocabulary, {.length = 128});
//   const Masker masker(&vocabulary, &lexicon, {.unit = MaskingUnit::kPhrase});
//   const PretrainingSource source(&instances, &masker, &vocabulary, {.length = 128});
//   training::PrefetchingReader reader(std::make_unique<training::SampleReader>(
//       &source, training::SampleReaderOptions{.batch_size = 16, .shuffle = true}));
//
// The reader is deterministic and can be resumed, since a sample depends on the options, its number
// and the epoch alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/text/instance.h"
#include "framework/text/masking.h"
#include "framework/training/sample_source.h"

namespace skiff::text {

struct PretrainingOptions {
  int64_t length = 128;  // L: inputs are padded to so many tokens
  uint64_t seed = 0;     // of the masks
  // Whether all epochs have the instances and masks of the first epoch, as validation needs.
  bool same_every_epoch = false;
};

class PretrainingSource final : public training::SampleSource {
 public:
  // The arguments outlive the source. M is the masker's most_masked. Throws Error
  // (kInvalidArgument) for a length below 1.
  PretrainingSource(const InstanceSource* instances, const Masker* masker,
                    const Vocabulary* vocabulary, const PretrainingOptions& options);

  int64_t size() const override { return instances_->size(); }
  // All the feeds of instance.h, in its order.
  std::vector<training::FeedShape> fields() const override;
  // Throws Error (kOutOfRange) for an instance that is longer than L.
  void Read(int64_t sample, int64_t epoch, int64_t row, std::span<Tensor> fields) const override;

 private:
  const InstanceSource* instances_;
  const Masker* masker_;
  const Vocabulary* vocabulary_;
  PretrainingOptions options_;
};

// All the feeds of instance.h, in its order.
std::vector<training::FeedShape> PretrainingFields(int64_t length, int64_t most_masked);
// Writes a sample into a row of PretrainingFields.
void WritePretrainingRow(const Instance& instance, const MaskedTokens& masked, TokenId pad,
                         int64_t row, std::span<Tensor> fields);

}  // namespace skiff::text
