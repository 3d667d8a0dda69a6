// How far a training is, and the numbers that it has so far.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/io/trainer_state.h"
#include "framework/training/metric.h"
#include "framework/training/reader.h"

namespace skiff::training {

struct TrainingProgress {
  int64_t epoch = 0;        // epochs finished
  int64_t batch = 0;        // batches finished of the current epoch, by all ranks
  ReaderState reader = {};  // empty: at the start of the epoch
  int64_t step = 0;         // steps finished, a step for each batch
  double seconds = 0;       // since the training began, breaks left out
  // Of the current epoch so far, by all ranks.
  std::vector<WeightedSum> sums = {};  // of the metrics
  int64_t samples = 0;
  double epoch_seconds = 0;  // without evaluation
  double learning_rate = 0;  // of the last step
  double best_value = 0;     // of the decisive metric
  int64_t best_epoch = 0;    // counted from 1; 0: none yet

  // Returns the number of epochs finished since the best epoch.
  int64_t EpochsWithoutGain() const { return epoch - best_epoch; }
  // Takes over the value of the decisive metric in an epoch, counted from 1, if the epoch is the
  // best so far, and returns whether it is. Of equal epochs the first one stays the best.
  bool TakeIfBest(const Metric& decisive, int64_t of_epoch, double value);
  // Goes to the next epoch, of which the last run has taken the first `taken` batches
  // (Batch::from_next_epoch).
  void EndEpoch(int64_t taken);
};

// Adds the progress to the state of a checkpoint, except `step`, which the checkpoint itself holds.
// `metrics`: those of the sums.
void AddProgress(const TrainingProgress& progress, const std::vector<Metric>& metrics,
                 TrainerState* state);
// Returns the progress that AddProgress has added, with step 0. Throws an Error (kDataLoss) if a
// number is missing or can't be read, if epoch or batch is negative, and if the state of the reader
// is missing within an epoch.
TrainingProgress ProgressIn(const TrainerState& state, const std::vector<Metric>& metrics);

}  // namespace skiff::training
