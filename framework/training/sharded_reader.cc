#include "framework/training/sharded_reader.h"

#include <utility>

#include "framework/base/error.h"
#include "framework/training/state_text.h"

namespace skiff::training {

ShardedReader::ShardedReader(std::unique_ptr<Reader> reader, const World& world, LastRun last_run)
    : reader_(std::move(reader)), rank_(world.rank), size_(world.size), last_run_(last_run) {
  SKIFF_ENFORCE(rank_ >= 0 && rank_ < size_, kInvalidArgument, "rank ", rank_, " of ", size_,
                ": expected one in [0, ", size_, ")");
  NoteEpoch(IntegerOf(reader_->state(), "epoch"));
  SKIFF_ENFORCE(last_run_ == LastRun::kPartial || batches_in_epoch_ >= size_, kInvalidArgument,
                "an epoch has ", batches_in_epoch_, " batches, which ", size_,
                " ranks can't share: expected at least ", size_);
}

void ShardedReader::NoteEpoch(int64_t epoch) {
  epoch_ = epoch;
  batches_in_epoch_ = reader_->batches_in_epoch();
  has_ended_ = false;
}

void ShardedReader::StartEpoch(int64_t epoch) {
  reader_->StartEpoch(epoch);
  NoteEpoch(epoch);
}

void ShardedReader::Restore(const ReaderState& state) {
  const int64_t epoch = IntegerOf(state, "epoch");
  reader_->Restore(state);
  NoteEpoch(epoch);
}

bool ShardedReader::Next(Batch* batch) {
  if (has_ended_) return false;
  const ReaderState before = reader_->state();
  try {
    return ReadRun(batch);
  } catch (...) {
    reader_->Restore(before);
    throw;
  }
}

bool ShardedReader::ReadRun(Batch* batch) {
  batch->from_next_epoch = 0;
  const int64_t taken = ReadFrom(0, batch);
  if (taken == size_) return true;
  if (taken == 0) return false;
  if (last_run_ == LastRun::kPartial) {
    has_ended_ = true;
    return taken > rank_;
  }
  reader_->StartEpoch(epoch_ + 1);
  const int64_t more = ReadFrom(taken, batch);
  SKIFF_ENFORCE(taken + more == size_, kInvalidArgument, "the rest of epoch ", epoch_,
                " and epoch ", epoch_ + 1, " have ", taken + more, " batches, which ", size_,
                " ranks can't share: expected at least ", size_);
  batch->from_next_epoch = more;
  has_ended_ = true;
  return true;
}

int64_t ShardedReader::ReadFrom(int64_t first, Batch* batch) {
  if (first > rank_) return reader_->Skip(size_ - first);
  const int64_t before = reader_->Skip(rank_ - first);
  if (before < rank_ - first || !reader_->Next(batch)) return before;
  return before + 1 + reader_->Skip(size_ - rank_ - 1);
}

}  // namespace skiff::training
