// Shares the batches of a reader among the ranks of a training.
//
//   PrefetchingReader train(std::make_unique<ShardedReader>(std::move(reader), world));
//
// All ranks wrap equal readers. Number the batches through all epochs, in the order of the wrapped
// reader: of N ranks, rank r reads batch c·N + r in its run c. So all ranks together read what one
// process reads, in as many steps of its `gradient_merge` as there are ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/comm/world.h"
#include "framework/training/reader.h"

namespace skiff::training {

// What happens to the last batches of an epoch if there are fewer than ranks.
enum class LastRun {
  // The first batches of the next epoch fill the run, which is the last one of its epoch for all
  // ranks. The next epoch then begins behind these batches: for trainings.
  kFilled,
  // The ranks behind the last batch have none: for evaluations.
  kPartial,
};

class ShardedReader final : public Reader {
 public:
  // Begins where the reader is. Throws an Error (kInvalidArgument) unless 0 <= rank < size and, if
  // the last run is filled, the epoch has at least as many batches as there are ranks. A run that
  // the next epoch doesn't fill is an Error of Next.
  ShardedReader(std::unique_ptr<Reader> reader, const World& world,
                LastRun last_run = LastRun::kFilled);

  // Goes to the first batch of the epoch, without an offset. To begin behind the batches that the
  // last run of the epoch before has taken, Restore the state after that run.
  void StartEpoch(int64_t epoch) override;
  // Gives this rank's batch of the next run, and goes to the first batch behind the run.
  // Batch::from_next_epoch says how many batches of the run are those of the next epoch; after such
  // a run, the epoch has ended.
  bool Next(Batch* batch) override;
  // The state of the wrapped reader before the next run. So any number of ranks can restore it, and
  // the wrapped reader itself, without ranks.
  ReaderState state() const override { return reader_->state(); }
  void Restore(const ReaderState& state) override;
  // Counts the batches of all ranks.
  int64_t batches_in_epoch() const override { return batches_in_epoch_; }
  std::vector<std::vector<FeedShape>> batch_shapes() const override {
    return reader_->batch_shapes();
  }
  int32_t ranks() const override { return size_; }

 private:
  bool ReadRun(Batch* batch);
  // Passes over batches that aren't this rank's, and reads the batch that is, from the position
  // `first` of the run to its end or the end of the epoch. Returns how many batches that are.
  int64_t ReadFrom(int64_t first, Batch* batch);
  void NoteEpoch(int64_t epoch);

  std::unique_ptr<Reader> reader_;
  const int32_t rank_;
  const int32_t size_;
  const LastRun last_run_;
  int64_t epoch_ = 0;  // that Next reads; a run may have left the reader in the next epoch
  int64_t batches_in_epoch_ = 0;
  bool has_ended_ = false;
};

}  // namespace skiff::training
