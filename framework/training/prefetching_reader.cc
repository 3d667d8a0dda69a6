// One producer thread and one consumer. The thread owns reader_ while it runs; everything else that
// both touch is under the mutex. Each batch carries the state of the reader after it, so state()
// can tell where the consumer is, however far the thread has read ahead. When the thread has ended,
// reader_ is put back to that state before anything else is done with it.
#include "framework/training/prefetching_reader.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "framework/base/error.h"

namespace skiff::training {

class PrefetchingReader::Thread {
 public:
  Thread(std::unique_ptr<Reader> reader, int32_t batches);
  ~Thread() { StopThread(); }

  void StartEpoch(int64_t epoch);
  bool Next(Batch* batch);
  int64_t Skip(int64_t count);
  void Restore(const ReaderState& state);
  const ReaderState& state() const { return state_; }
  int64_t batches_in_epoch() const { return batches_in_epoch_; }
  const std::vector<std::vector<FeedShape>>& batch_shapes() const { return batch_shapes_; }
  int32_t ranks() const { return ranks_; }

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
  int32_t ranks_;

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

PrefetchingReader::PrefetchingReader(std::unique_ptr<Reader> reader, int32_t batches)
    : thread_(std::make_unique<Thread>(std::move(reader), batches)) {}

PrefetchingReader::~PrefetchingReader() = default;

void PrefetchingReader::StartEpoch(int64_t epoch) { thread_->StartEpoch(epoch); }
bool PrefetchingReader::Next(Batch* batch) { return thread_->Next(batch); }
void PrefetchingReader::Restore(const ReaderState& state) { thread_->Restore(state); }
ReaderState PrefetchingReader::state() const { return thread_->state(); }
int64_t PrefetchingReader::batches_in_epoch() const { return thread_->batches_in_epoch(); }
std::vector<std::vector<FeedShape>> PrefetchingReader::batch_shapes() const {
  return thread_->batch_shapes();
}
int32_t PrefetchingReader::ranks() const { return thread_->ranks(); }
int64_t PrefetchingReader::PassOver(int64_t count) { return thread_->Skip(count); }

PrefetchingReader::Thread::Thread(std::unique_ptr<Reader> reader, int32_t batches)
    : reader_(std::move(reader)), capacity_(batches), ranks_(reader_->ranks()) {
  SKIFF_ENFORCE(batches >= 1, kInvalidArgument, "prefetch ", batches,
                " batches: expected at least 1");
  batch_shapes_ = reader_->batch_shapes();
  Remember();
}

void PrefetchingReader::Thread::Remember() {
  state_ = reader_->state();
  batches_in_epoch_ = reader_->batches_in_epoch();
}

void PrefetchingReader::Thread::StartEpoch(int64_t epoch) {
  StopThread();
  PutBack();
  reader_->StartEpoch(epoch);
  Remember();
}

void PrefetchingReader::Thread::Restore(const ReaderState& state) {
  StopThread();
  PutBack();
  reader_->Restore(state);
  Remember();
}

int64_t PrefetchingReader::Thread::Skip(int64_t count) {
  StopThread();
  PutBack();
  is_ahead_ = true;  // an Error leaves the reader somewhere
  const int64_t skipped = reader_->Skip(count);
  is_ahead_ = false;
  Remember();
  return skipped;
}

bool PrefetchingReader::Thread::Next(Batch* batch) {
  // Started late, so that a reader that is only repositioned starts no threads.
  if (!thread_.joinable()) {
    PutBack();
    StartThread();
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty() || ended_ || failure_ != nullptr; });
  if (ready_.empty()) {
    if (ended_) return false;
    const std::exception_ptr failure = failure_;
    lock.unlock();
    StopThread();
    std::rethrow_exception(failure);
  }
  // The caller's old batch goes to free_, and its storage serves a later batch: in the long run
  // nothing is allocated.
  std::swap(*batch, ready_.front().batch);
  state_ = std::move(ready_.front().state);
  free_.push_back(std::move(ready_.front().batch));
  ready_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return true;
}

void PrefetchingReader::Thread::StartThread() {
  thread_ = std::thread([this] { ReadAhead(); });
  is_ahead_ = true;
}

void PrefetchingReader::Thread::PutBack() {
  if (!is_ahead_) return;
  reader_->Restore(state_);
  is_ahead_ = false;
}

void PrefetchingReader::Thread::StopThread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
  stop_ = false;
  ended_ = false;
  failure_ = nullptr;
  for (ReadBatch& read : ready_) free_.push_back(std::move(read.batch));
  ready_.clear();
}

Batch PrefetchingReader::Thread::TakeFree() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return {};
  Batch batch = std::move(free_.back());
  free_.pop_back();
  return batch;
}

void PrefetchingReader::Thread::ReadAhead() {
  while (true) {
    // Reads without the lock, which is held only to hand over.
    ReadBatch read{.batch = TakeFree(), .state = {}};
    std::exception_ptr failure;
    bool ended = false;
    try {
      ended = !reader_->Next(&read.batch);
      if (!ended) read.state = reader_->state();
    } catch (...) {
      failure = std::current_exception();
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stop_ || static_cast<int32_t>(ready_.size()) < capacity_; });
    // The batch just read is dropped. Whoever stops the thread restores the reader to state_.
    if (stop_) return;
    ended_ = ended;
    failure_ = failure;
    const bool goes_on = !ended && failure == nullptr;
    if (goes_on) ready_.push_back(std::move(read));
    lock.unlock();
    changed_.notify_all();
    if (!goes_on) return;
  }
}

}  // namespace skiff::training
