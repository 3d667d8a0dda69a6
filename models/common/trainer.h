// Trains a classifier over epochs: evaluation, checkpoints, log, learning curve, early stop.
//
// In the output directory it writes
//   checkpoints/         the newest states to go on from (framework/io/checkpoint.h)
//   model/               the weights of the best epoch, as an inference model; the averaged ones
//                        where the program averages them, and these decide which epoch is best
//   training_log.jsonl   one line an epoch
//   learning_curve.svg   drawn again after each epoch
//   .lock                held while a training writes there (framework/io/file_lock.h)
//
// A training that is resumed gives, bit for bit, what it would have given without the break: the
// checkpoint holds parameters, optimizer states, step counters, the reader's position and, where a
// tuner chose kernels and layouts, its choices. One thread uses a Trainer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/io/checkpoint.h"
#include "framework/io/file_lock.h"
#include "framework/tensor/replaced_values.h"
#include "models/common/batch_reader.h"
#include "models/common/classifier_program.h"
#include "models/common/training_log.h"

namespace skiff::models {

struct TrainerOptions {
  std::string title;       // of the learning curve
  std::string output_dir;  // made if it isn't there
  int64_t epochs = 1;
  int64_t save_every_steps = 0;   // in addition to the end of each epoch
  int64_t early_stop_epochs = 0;  // so many epochs without a better accuracy end it; 0: never
  int64_t stop_after_steps = 0;   // saves and stops there as a signal would; 0: never
  // What must not change between a training and its continuation: name and value.
  std::map<std::string, std::string> configuration;
  bool is_terminal = false;  // of `out`
  // Chooses kernels, of the default registry, and layouts; none: the rule does. All choices are
  // made before the first step, so that every checkpoint holds them.
  std::shared_ptr<KernelTuner> tuner;
  // How memory is planned, and which passes rewrite the update ops (executor.h): no result depends
  // on them.
  MemoryOptions memory;
  bool fuse_optimizer = false;
  bool flatten_parameters = false;
};

struct EvaluationResult {
  double loss = 0;      // mean over the samples
  double accuracy = 0;  // share of right answers
};

struct TrainingResult {
  bool finished = false;     // false: asked to stop, and saved
  int signal = 0;            // the one that asked
  double best_accuracy = 0;  // in validation; with averaged parameters, if there are such
  int64_t best_epoch = 0;    // counted from 1; 0: none yet
  std::vector<TrainingRecord> records;
  std::string weights_hash;  // of what the evaluation program keeps
};

class Trainer {
 public:
  // All arguments outlive the trainer. Runs the startup program. `out` gets what a person reads.
  Trainer(const ClassifierProgram* program, BatchReader* train, BatchReader* validation,
          TrainerOptions options, std::ostream* out);

  // Goes on from the newest checkpoint of the output directory, where from now on, until Run ends
  // or the trainer is destroyed, no other one runs. Warns if the number of threads is another, for
  // the bits of the result depend on it. Kernels are those of the checkpoint: its training's
  // choices are fixed, with or without a tuner in the options, and if it had no tuner, that of the
  // options isn't used, with a warning. Error as LoadForEvaluation, and kFailedPrecondition when
  // another trainer runs there. After an Error the trainer is as it was.
  void Resume();

  // Takes over what the newest checkpoint holds, kernel choices included, though another trainer
  // may write there: for Evaluate and WeightsHash. Error as LoadLatestCheckpoint; kInvalidArgument
  // if the configuration is another, saying in what; kDataLoss if the trainer's state isn't one of
  // ours. After an Error the trainer is as it was.
  void LoadForEvaluation();

  // Trains up to the last epoch. SIGINT and SIGTERM are answered between two steps. Error
  // (kFailedPrecondition) when another trainer runs in the output directory, when that holds
  // checkpoints, a model or lines of a log and this is no continuation, or the loss is no finite
  // number; and as executor, reader and files.
  TrainingResult Run();

  EvaluationResult Evaluate();
  // With averaged parameters; none if the program averages nothing, or no step was run yet.
  std::optional<EvaluationResult> EvaluateAveraged();
  // Averages in the place of the weights (ParameterAverage::Apply); nullptr if the program averages
  // nothing.
  std::unique_ptr<ReplacedValues> ApplyAverages();
  std::string WeightsHash() const;

 private:
  struct Progress {
    ReaderPosition position;
    int64_t step = 0;
    double seconds = 0;
    // Of the epoch so far.
    double loss_sum = 0;
    double correct = 0;
    int64_t samples = 0;
    double epoch_seconds = 0;
    double learning_rate = 0;
    double best_accuracy = -1;
    int64_t best_epoch = 0;
  };
  // Feeds of one batch size, and the program bound to them.
  struct BoundBatch {
    Tensor image;
    Tensor label;
    std::unique_ptr<BoundProgram> program;
  };
  struct BoundPrograms {
    CompiledProgram compiled;
    FetchList fetches;
    std::map<int64_t, BoundBatch> by_size;
  };

  int64_t EpochsWithoutGain() const;
  bool StoppedEarly() const;
  std::string CheckpointDirectory() const;
  std::string ModelDirectory() const;
  std::string LogPath() const;
  void RefuseToOverwriteTraining() const;
  std::unique_ptr<FileLock> NewLock() const;
  // The state of the newest checkpoint, once everything in it is taken over.
  TrainerState Load();
  void ContinueWith(std::optional<KernelChoices> choices);
  // Makes the plans of all batches.
  void PreparePlans();
  BoundBatch& BoundFor(BoundPrograms* programs, int64_t batch_size);
  BoundProgram& Step(BoundPrograms* programs, const Batch& batch);
  // Trains to the end of the epoch; false if it was asked to stop before.
  bool TrainEpoch(const std::function<bool()>& stop);
  void TrainBatch(const Batch& batch);
  void EndEpoch(TrainingLog* log);
  void Report(const TrainingRecord& record) const;
  void Save();
  TrainerState SavedState() const;
  Progress RestoredProgress(const TrainerState& state) const;

  const ClassifierProgram* program_;
  BatchReader* train_;
  BatchReader* validation_;
  TrainerOptions options_;
  std::ostream* out_;
  Executor executor_;
  BoundPrograms training_;
  BoundPrograms evaluation_;
  std::optional<optimizer::CompiledAverage> average_;  // none if the program averages nothing
  Progress progress_;
  bool is_continuation_ = false;
  // Of the output directory: from Resume to the end of Run.
  std::unique_ptr<FileLock> lock_;
};

}  // namespace skiff::models
