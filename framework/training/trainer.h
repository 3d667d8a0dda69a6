// Trains a model over epochs: evaluation, checkpoints, log, learning curve, early stop.
//
// The trainer knows nothing of the model: readers give named tensors, which it feeds; the loss and
// the metrics are numbers that it fetches by name.
//
// In the output directory it writes
//   checkpoints/         the newest states to go on from (framework/io/checkpoint.h)
//   model/               the weights of the best epoch, as an inference model, of float32 unless
//                        told otherwise; if the program
//                        averages weights, the averaged ones, which then also decide which epoch is
//                        best
//   unaveraged_model/    then, the weights themselves of the same epoch
//   training_log.jsonl   one line an epoch
//   learning_curve.svg   drawn again after each epoch
//   .lock                held while a training writes there (framework/io/file_lock.h)
//
// A resumed training gives, bit for bit, the result of a training without the break: the checkpoint
// holds parameters, optimizer states, step counters, the states of the reader and of the callbacks
// and, if a tuner chose kernels, its choices. One thread uses a Trainer.
//
// With the communicator of several ranks (CompileOptions::data_parallel), a Trainer on each rank
// trains with the others; every function that isn't const is called on all ranks, in the same
// order. The training reader is a ShardedReader of these ranks, the validation reader may be one
// (LastRun::kPartial).
// - A run trains a batch on each rank. Steps and batches count the batches of all ranks, so a run
//   advances both by the number of ranks.
// - A run that takes the last batches of an epoch and the first of the next belongs to the epoch
//   that it ends, metrics included. In the last epoch, batches that don't fill a run are left out.
// - Metrics are means over the batches of all ranks, added up in the order in which one process
//   reads the batches. Callbacks are called on each rank, OnStep with the metrics of the rank's own
//   batch.
// - Stop: a signal or a callback on one rank stops all ranks after the same run.
// - Callbacks change the training of all ranks alike (callback.h): each checkpoint begins with a
//   comparison of the ranks' weights and of their callbacks' states.
// - Checkpoints, and stops, are made only between two rounds of gradient_merge, in which each rank
//   has sums of its own; a checkpoint that is due waits. Between rounds, all that a checkpoint
//   holds is equal on all ranks. So any number of ranks can go on, to the same bits if it is the
//   same number, and with the same batches if it is another number. A training that ends within a
//   round saves there, and can't be continued by more epochs.
// - Rank 0 alone writes files and messages; other ranks write warnings behind their rank. All ranks
//   read the checkpoints, so they need a file system in common.
// - Ranks that begin with different settings, programs, weights or files throw an AgreedError
//   (rank_agreement.h), which names the first difference. So do ranks of which one can't resume, or
//   can't take the output directory. After any other Error in Run, the rank ends the other ranks
//   (Communicator::Abort), with the step.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "framework/tensor/replaced_values.h"
#include "framework/training/metric.h"
#include "framework/training/reader.h"
#include "framework/training/trainer_options.h"
#include "framework/training/training_program.h"
#include "framework/training/training_record.h"

namespace skiff::training {

struct TrainingResult {
  bool finished = false;        // false: asked to stop, and saved
  int signal = 0;               // the signal that stopped it, or 0
  Metric decisive_metric = {};  // decides which epoch is best
  double best_value = 0;        // in validation; with averaged parameters, if there are any
  int64_t best_epoch = 0;       // counted from 1; 0: none yet
  std::vector<TrainingRecord> records = {};  // on rank 0
  std::string weights_hash = {};             // of the evaluation program's persistables
};

class Trainer {
 public:
  // Runs the startup program. All arguments outlive the trainer. `out` gets the messages for
  // people. Throws an Error (kInvalidArgument) for options out of range, for a reader that is
  // nullptr, for a decisive metric that the program lacks, and for a tuner if a reader doesn't know
  // the shapes of its batches. Also throws an Error for mistakes that would show only after an
  // epoch: if a metric is no variable of both programs or not one number, if the programs keep a
  // variable that nothing gives a value, if the test program or the model declares a parameter in
  // another dtype than the main program does (but a model may be float32 where there are master
  // weights), if an entry of saved_precision.keep_float32 fits nothing in the main program
  // (kNotFound), and if the model can't be saved (MakeInferenceProgram). And what TakeWeights
  // throws.
  Trainer(const TrainingProgram* program, Reader* train, Reader* validation, TrainerOptions options,
          std::ostream* out);
  ~Trainer();

  // Continues from the newest checkpoint of the output directory, and keeps other trainers out of
  // that directory until Run ends or the trainer is destroyed. Warns if the number of threads
  // differs from the checkpoint's, because the bits of the result depend on it. Takes over the
  // kernel choices of the checkpoint, with or without a tuner in the options; if the checkpoint's
  // training had no tuner, warns and doesn't use the options' tuner. Throws what LoadForEvaluation
  // throws, and an Error (kFailedPrecondition) if another trainer runs there. After an Error the
  // trainer is as it was; but of several ranks, some may have loaded the checkpoint, and none can
  // go on.
  void Resume();

  // Loads the newest checkpoint, kernel choices included, for Evaluate or the WeightsHash; another
  // trainer may write there meanwhile. Throws what LoadLatestCheckpoint throws, and an Error:
  // kInvalidArgument if the configuration differs, saying in what; kDataLoss if the state isn't one
  // of a trainer; kFailedPrecondition for a checkpoint within a round of gradient_merge, if there
  // are several ranks or TrainerOptions::whole_rounds. A checkpoint of an earlier version knows the
  // names of files, but not their contents: then the names must be the same, and a warning says so.
  // After an Error the trainer is as Resume says.
  void LoadForEvaluation();

  // Trains up to the last epoch. SIGINT and SIGTERM stop it between two steps. First removes what a
  // kill may have left: temporary files, and checkpoints that the last save didn't come to remove.
  // Throws an Error (kFailedPrecondition) if another trainer runs in the output directory, if that
  // holds checkpoints, a model or lines of a log and this doesn't continue that training, or if the
  // loss isn't a finite number; (kDataLoss) if somebody removes or replaces the output directory
  // meanwhile, or if at the end something that was written isn't there; and what executor, reader,
  // callbacks and files throw.
  TrainingResult Run();

  // Returns the metrics over the validation reader's epoch 0.
  MetricValues Evaluate();
  // The same with averaged parameters. Returns nothing if the program averages nothing, or before
  // the first step.
  MetricValues EvaluateAveraged();
  // Replaces the weights by their averages (training::ApplyAverage). Returns nullptr if the program
  // averages nothing.
  std::unique_ptr<ReplacedValues> ApplyAverages();
  std::string WeightsHash() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace skiff::training
