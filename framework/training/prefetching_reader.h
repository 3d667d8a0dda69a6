// Reads ahead in a separate thread. The batches and their order stay the same.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/training/reader.h"

namespace skiff::training {

// The thread runs from the first Next to the end of the epoch. StartEpoch, Skip, Restore and the
// destructor end it at once, however full the queue is. So a PrefetchingReader reads ahead of a
// ShardedReader, which skips a lot, not the other way round.
class PrefetchingReader final : public Reader {
 public:
  // Reads at most `batches` batches ahead. Throws an Error (kInvalidArgument) for batches < 1.
  explicit PrefetchingReader(std::unique_ptr<Reader> reader, int32_t batches = 4);
  ~PrefetchingReader() override;
  PrefetchingReader(const PrefetchingReader&) = delete;
  PrefetchingReader& operator=(const PrefetchingReader&) = delete;

  void StartEpoch(int64_t epoch) override;
  bool Next(Batch* batch) override;
  ReaderState state() const override;
  void Restore(const ReaderState& state) override;
  int64_t batches_in_epoch() const override;
  std::vector<std::vector<FeedShape>> batch_shapes() const override;
  int32_t ranks() const override;

 private:
  class Thread;

  int64_t PassOver(int64_t count) override;

  std::unique_ptr<Thread> thread_;
};

}  // namespace skiff::training
