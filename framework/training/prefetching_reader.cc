// One producer thread and one consumer. The thread owns reader_ while it runs; everything else that
// both touch is under the mutex. Each batch carries the state of the reader after it, so state()
// can tell where the consumer is, however far the thread has read ahead. When the thread has ended,
// reader_ is put back to that state before anything else is done with it.
#include "framework/training/prefetching_reader.h"

#include <utility>

#include "framework/base/error.h"

namespace skiff::training {

PrefetchingReader::PrefetchingReader(std::unique_ptr<Reader> reader, int32_t batches)
    : reader_(std::move(reader)), capacity_(batches) {
  SKIFF_ENFORCE(batches >= 1, kInvalidArgument, "prefetch ", batches,
                " batches: expected at least 1");
  batch_shapes_ = reader_->batch_shapes();
  Remember();
}

PrefetchingReader::~PrefetchingReader() { StopThread(); }

void PrefetchingReader::Remember() {
  state_ = reader_->state();
  batches_in_epoch_ = reader_->batches_in_epoch();
}

void PrefetchingReader::StartEpoch(int64_t epoch) {
  StopThread();
  PutBack();
  reader_->StartEpoch(epoch);
  Remember();
}

void PrefetchingReader::Restore(const ReaderState& state) {
  StopThread();
  PutBack();
  reader_->Restore(state);
  Remember();
}

bool PrefetchingReader::Next(Batch* batch) {
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

void PrefetchingReader::StartThread() {
  thread_ = std::thread([this] { ReadAhead(); });
  is_ahead_ = true;
}

void PrefetchingReader::PutBack() {
  if (!is_ahead_) return;
  reader_->Restore(state_);
  is_ahead_ = false;
}

void PrefetchingReader::StopThread() {
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

Batch PrefetchingReader::TakeFree() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return {};
  Batch batch = std::move(free_.back());
  free_.pop_back();
  return batch;
}

void PrefetchingReader::ReadAhead() {
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
