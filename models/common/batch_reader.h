// Samples in batches, shuffled anew for each epoch, read ahead by one thread.
//
//   BatchReader reader(&source, {.batch_size = 64, .shuffle = true, .seed = 1});
//   reader.Seek({.epoch = 3, .batch = 0});
//   while (reader.Next(&batch)) …          // the rest of epoch 3
//
// The batches depend on source, options and position alone: reading ahead changes nothing, and a
// reader put back to position() goes on with the very batch that would have come next.
//
// One thread uses a reader. The reader owns the thread that reads ahead, which runs from Seek to
// the end of the epoch; the destructor ends it at once, however full the queue is.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "framework/tensor/tensor.h"
#include "models/common/sample_source.h"

namespace skiff::models {

struct BatchReaderOptions {
  int64_t batch_size = 64;
  bool shuffle = false;
  bool drop_last = false;        // leaves out a last batch that isn't full
  uint64_t seed = 0;             // of the shuffling
  int32_t prefetch_batches = 4;  // batches read ahead at most; 0: no thread, Next reads itself
};

struct ReaderPosition {
  int64_t epoch = 0;
  int64_t batch = 0;  // the one that Next gives next
  friend bool operator==(const ReaderPosition&, const ReaderPosition&) = default;
};

struct Batch {
  Tensor input;  // float32 [size, …]
  Tensor label;  // int64 [size, 1]
  int64_t size() const { return label.has_data() ? label.shape()[0] : 0; }
};

class BatchReader {
 public:
  // Stands at the start of epoch 0. The source outlives the reader. Error (kInvalidArgument) for
  // batch_size < 1, a negative prefetch_batches, an empty source, and if drop_last leaves nothing.
  BatchReader(const SampleSource* source, const BatchReaderOptions& options);
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  int64_t batches_per_epoch() const { return batches_per_epoch_; }
  // The sizes that batches have, each once.
  std::vector<int64_t> batch_sizes() const;
  ReaderPosition position() const { return position_; }

  // Goes anywhere. Error (kOutOfRange) for a negative epoch or a batch outside of
  // [0, batches_per_epoch()].
  void Seek(ReaderPosition position);

  // Gives the next batch of the epoch, or false behind its last. The storage that `batch` had is
  // used again for a later one. Rethrows what the source threw for this batch; the reader then
  // stays where it is, and the next call tries again.
  bool Next(Batch* batch);

 private:
  void ShuffleFor(int64_t epoch);
  void ReadBatch(ReaderPosition position, Batch* batch) const;
  void StartThread();
  void StopThread();
  void ReadAhead(ReaderPosition position);
  Batch TakeFree();

  const SampleSource* source_;
  BatchReaderOptions options_;
  int64_t batches_per_epoch_;
  ReaderPosition position_;
  // Sample numbers in the order of the epoch; written only while no thread runs.
  std::vector<int64_t> order_;

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by the mutex.
  std::deque<Batch> ready_;
  std::vector<Batch> free_;
  std::exception_ptr failure_;  // of the batch behind the ready ones
  bool stop_ = false;
};

}  // namespace skiff::models
