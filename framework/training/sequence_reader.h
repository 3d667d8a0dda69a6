// Labelled sequences of different lengths in ragged batches, without padding.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/training/reader.h"

namespace skiff::training {

struct LabelledSequences {
  std::vector<std::vector<int64_t>> sequences;  // ids; none may be empty
  std::vector<int64_t> labels;                  // one for each
};

struct SequenceReaderOptions {
  // A batch has as many sequences as fit into both limits, but at least one.
  int64_t batch_size = 64;
  int64_t most_tokens = 4096;
  // Shuffled sequences are sorted by length in parts of so many batches, and each batch is of one
  // part, so that its sequences are about as long as each other: a recurrence over them then takes
  // fewer steps. The batches are shuffled again. 1: no sorting.
  int64_t sorted_batches = 16;
  bool shuffle = false;  // otherwise the order is that of the sequences, unsorted
  // Each id is read as `replacement` with this probability, in [0, 1): word dropout, with which a
  // network learns not to rely on single words.
  double replaced = 0;
  int64_t replacement = 0;
  uint64_t seed = 0;  // of the shuffling and of what is replaced
};

// Feeds `ids` [tokens], int64, with one LoD level, and `label` [sequences, 1], int64. The batches
// of an epoch depend on the options and the epoch only.
class SequenceReader final : public Reader {
 public:
  static constexpr const char* kIds = "ids";
  static constexpr const char* kLabel = "label";

  // Begins at the start of epoch 0. The sequences outlive the reader. Throws an Error
  // (kInvalidArgument) for an option out of range, no sequences, an empty sequence, one with more
  // than most_tokens, and another number of labels.
  SequenceReader(const LabelledSequences* data, const SequenceReaderOptions& options);

  void StartEpoch(int64_t epoch) override;
  bool Next(Batch* batch) override;
  ReaderState state() const override;
  void Restore(const ReaderState& state) override;
  int64_t batches_in_epoch() const override { return static_cast<int64_t>(batches_.size()); }

 private:
  using Samples = std::vector<int64_t>;

  // Returns the numbers of the samples of each batch of an epoch.
  std::vector<Samples> BatchesOf(int64_t epoch) const;
  // Appends the batches of these samples, at least one, in their order.
  void AppendBatches(std::span<const int64_t> part, std::vector<Samples>* batches) const;
  int64_t LengthOf(int64_t sample) const;
  // Writes the ids of a sample, some of them replaced. Returns the end.
  int64_t* Write(int64_t sample, int64_t* to) const;

  const LabelledSequences* data_;
  SequenceReaderOptions options_;
  int64_t epoch_ = 0;
  std::vector<Samples> batches_;
  size_t next_ = 0;
};

}  // namespace skiff::training
