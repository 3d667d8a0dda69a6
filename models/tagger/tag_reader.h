// Sentences with tags in ragged batches, without padding.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/training/batch_list_reader.h"

namespace skiff::models {

struct TaggedIds {
  std::vector<std::vector<int64_t>> words = {};  // of each sentence, at least one
  std::vector<std::vector<int64_t>> tags = {};   // one for each word
};

// Feeds `words` [words] and `tags` [words, 1], int64 and ragged. Batches are as in
// training::LengthBatches, by words.
class TagReader final : public training::BatchListReader {
 public:
  static constexpr const char* kWords = "words";
  static constexpr const char* kTags = "tags";

  // Begins at the start of epoch 0. The sentences outlive the reader. Throws an Error
  // (kInvalidArgument) for an option out of range, no sentences, a sentence without words or with
  // more than most_tokens, and other numbers of tags than of words.
  TagReader(const TaggedIds* sentences, const training::LengthBatchOptions& options);

 private:
  std::vector<Samples> BatchesOf(int64_t epoch) const override;
  void Read(const Samples& samples, int64_t epoch, training::Batch* batch) const override;

  const TaggedIds* sentences_;
  training::LengthBatchOptions options_;
  std::vector<int64_t> lengths_;
};

}  // namespace skiff::models
