// Labelled sequences of different lengths in ragged batches, without padding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/training/batch_list_reader.h"

namespace skiff::training {

struct LabelledSequences {
  std::vector<std::vector<int64_t>> sequences = {};  // ids; none may be empty
  std::vector<int64_t> labels = {};                  // one for each
};

struct SequenceReaderOptions {
  // As in LengthBatchOptions: counts of sequences and of their ids.
  int64_t batch_size = 64;
  int64_t most_tokens = 4096;
  int64_t sorted_batches = 16;
  bool shuffle = false;
  // Each id is read as `replacement` with this probability, in [0, 1): word dropout, with which a
  // network learns not to rely on single words.
  double replaced = 0;
  int64_t replacement = 0;
  uint64_t seed = 0;  // of the shuffling and the replacements
};

// Feeds `ids` [tokens], int64, with one LoD level, and `label` [sequences, 1], int64. The batches
// of an epoch depend on the options and the epoch only.
class SequenceReader final : public BatchListReader {
 public:
  static constexpr const char* kIds = "ids";
  static constexpr const char* kLabel = "label";

  // Begins at the start of epoch 0. The sequences outlive the reader. Throws an Error
  // (kInvalidArgument) for an option out of range, no sequences, an empty sequence, one with more
  // than most_tokens, and another number of labels.
  SequenceReader(const LabelledSequences* data, const SequenceReaderOptions& options);

 private:
  std::vector<Samples> BatchesOf(int64_t epoch) const override;
  void Read(const Samples& samples, int64_t epoch, Batch* batch) const override;
  // Writes the ids of a sample, some of them replaced. Returns the end.
  int64_t* Write(int64_t sample, int64_t epoch, int64_t* to) const;

  const LabelledSequences* data_;
  SequenceReaderOptions options_;
  std::vector<int64_t> lengths_;
};

}  // namespace skiff::training
