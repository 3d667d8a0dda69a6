// A reader whose epochs are lists of batches of numbered samples, for samples of different lengths.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/training/reader.h"

namespace skiff::training {

struct LengthBatchOptions {
  // A batch has as many samples as fit into both limits, but at least one.
  int64_t batch_size = 64;
  int64_t most_tokens = 4096;
  // Shuffled samples are sorted by length in parts of so many batches. A batch is of one part, so
  // its samples are about equally long: a recurrence over them then takes fewer steps. The batches
  // are shuffled again. 1: no sorting.
  int64_t sorted_batches = 16;
  bool shuffle = false;  // otherwise the order is that of the samples, unsorted
  uint64_t seed = 0;     // of the shuffling
};

// Throws an Error (kInvalidArgument) for a number below 1.
void CheckLengthBatchOptions(const LengthBatchOptions& options);

// Returns the numbers of the samples of each batch of an epoch. `lengths`: of each sample, at most
// most_tokens; there is one at least.
std::vector<std::vector<int64_t>> LengthBatches(std::span<const int64_t> lengths,
                                                const LengthBatchOptions& options, int64_t epoch);

class BatchListReader : public Reader {
 public:
  void StartEpoch(int64_t epoch) override;
  bool Next(Batch* batch) override;
  ReaderState state() const override;
  void Restore(const ReaderState& state) override;
  int64_t batches_in_epoch() const override { return static_cast<int64_t>(batches_.size()); }

 protected:
  using Samples = std::vector<int64_t>;

  // Returns the numbers of the samples of each batch of an epoch.
  virtual std::vector<Samples> BatchesOf(int64_t epoch) const = 0;
  // Makes the batch of these samples, except Batch::samples.
  virtual void Read(const Samples& samples, int64_t epoch, Batch* batch) const = 0;

 private:
  int64_t PassOver(int64_t count) override;

  int64_t epoch_ = 0;
  std::vector<Samples> batches_;
  size_t next_ = 0;
};

}  // namespace skiff::training
