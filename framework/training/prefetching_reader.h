// Reads ahead in a separate thread. The batches and their order stay the same.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "framework/training/reader.h"

namespace skiff::training {

// The thread runs from the first Next to the end of the epoch. StartEpoch, Restore and the
// destructor end it at once, however full the queue is.
class PrefetchingReader final : public Reader {
 public:
  // Reads at most `batches` batches ahead. Throws an Error (kInvalidArgument) for batches < 1.
  explicit PrefetchingReader(std::unique_ptr<Reader> reader, int32_t batches = 4);
  ~PrefetchingReader() override;
  PrefetchingReader(const PrefetchingReader&) = delete;
  PrefetchingReader& operator=(const PrefetchingReader&) = delete;

  void StartEpoch(int64_t epoch) override;
  bool Next(Batch* batch) override;
  ReaderState state() const override { return state_; }
  void Restore(const ReaderState& state) override;
  int64_t batches_in_epoch() const override { return batches_in_epoch_; }
  std::vector<std::vector<FeedShape>> batch_shapes() const override { return batch_shapes_; }

 private:
  struct ReadBatch {
    Batch batch;
    ReaderState state;  // of the reader, after the batch
  };

  void StartThread();
  // Ends the thread, if there is one, and drops what it read ahead, which leaves `reader_` behind
  // state_.
  void StopThread();
  // Restores `reader_` to state_ where a thread has left it elsewhere. It may fail; whatever uses
  // the reader next tries again.
  void PutBack();
  void ReadAhead();
  // Stores the reader's state and size of the epoch, while no thread uses it.
  void Remember();
  Batch TakeFree();

  std::unique_ptr<Reader> reader_;  // the thread's, while there is one
  bool is_ahead_ = false;           // whether reader_ may be elsewhere than at state_
  int32_t capacity_;
  ReaderState state_;  // after the batch that Next returned last
  int64_t batches_in_epoch_ = 0;
  std::vector<std::vector<FeedShape>> batch_shapes_;

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by the mutex.
  std::deque<ReadBatch> ready_;
  std::vector<Batch> free_;
  std::exception_ptr failure_;  // of the batch after the ready ones
  bool ended_ = false;          // there is no batch after the ready ones
  bool stop_ = false;
};

}  // namespace skiff::training
