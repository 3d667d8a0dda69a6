// Numbered samples in batches, shuffled again for each epoch.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/training/reader.h"
#include "framework/training/sample_source.h"

namespace skiff::training {

// Returns 0 … count - 1 in the order of an epoch; a function of the arguments alone.
std::vector<int64_t> ShuffledOrder(int64_t count, uint64_t seed, int64_t epoch);

struct SampleReaderOptions {
  int64_t batch_size = 64;
  bool shuffle = false;
  bool drop_last = false;  // leaves out a last batch that isn't full
  uint64_t seed = 0;       // of the shuffling
};

// A batch feeds each field of the source under its name. Reads in the thread that calls Next.
class SampleReader final : public Reader {
 public:
  // Begins at the start of epoch 0. The source outlives the reader. Throws an Error
  // (kInvalidArgument) for batch_size < 1, an empty source, and if drop_last leaves no batch.
  SampleReader(const SampleSource* source, const SampleReaderOptions& options);

  void StartEpoch(int64_t epoch) override;
  bool Next(Batch* batch) override;
  ReaderState state() const override;
  void Restore(const ReaderState& state) override;
  int64_t batches_in_epoch() const override { return batches_in_epoch_; }
  std::vector<std::vector<FeedShape>> batch_shapes() const override;

 private:
  int64_t PassOver(int64_t count) override;
  std::vector<FeedShape> FeedsOf(int64_t batch_size) const;
  void GoTo(int64_t epoch, int64_t batch);
  void ReadBatch(Batch* batch);

  const SampleSource* source_;
  SampleReaderOptions options_;
  int64_t batches_in_epoch_;
  int64_t epoch_ = 0;
  int64_t batch_ = 0;           // the next one
  std::vector<int64_t> order_;  // sample numbers in the order of the epoch
  std::vector<Tensor> fields_;  // of the batch that is being read
};

}  // namespace skiff::training
