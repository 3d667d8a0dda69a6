// Sentences with their translations in ragged batches, without padding.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/training/batch_list_reader.h"

namespace skiff::text {

// Ids without the marks of marks.h; no list of a pair may be empty.
struct TokenPairs {
  std::vector<std::vector<int64_t>> sources = {};
  std::vector<std::vector<int64_t>> targets = {};  // one for each
};

// Feeds, all int64: `source` [tokens], ragged; `given` [tokens], ragged: kBeginId and the
// target; `label` [tokens, 1]: the target and kEndId, in the rows of `given`. Batches are as in
// training::LengthBatches, by the tokens of source and target together.
class PairReader final : public training::BatchListReader {
 public:
  static constexpr const char* kSource = "source";
  static constexpr const char* kGiven = "given";
  static constexpr const char* kLabel = "label";

  // Begins at the start of epoch 0. The pairs outlive the reader. Throws an Error
  // (kInvalidArgument) for an option out of range, no pairs, an empty list, and different numbers
  // of sources and targets.
  PairReader(const TokenPairs* pairs, const training::LengthBatchOptions& options);

 private:
  std::vector<Samples> BatchesOf(int64_t epoch) const override;
  void Read(const Samples& samples, int64_t epoch, training::Batch* batch) const override;

  const TokenPairs* pairs_;
  training::LengthBatchOptions options_;
  std::vector<int64_t> lengths_;
};

}  // namespace skiff::text
