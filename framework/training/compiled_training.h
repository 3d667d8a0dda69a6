// The programs of a training on an executor: compiled, with the values that they keep.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "framework/comm/communicator.h"
#include "framework/executor/executor.h"
#include "framework/tensor/replaced_values.h"
#include "framework/training/average.h"
#include "framework/training/bound_feeds.h"
#include "framework/training/metric.h"
#include "framework/training/reader.h"
#include "framework/training/trainer_options.h"
#include "framework/training/training_metrics.h"
#include "framework/training/training_program.h"

namespace skiff::training {

class CompiledTraining {
 public:
  // Compiles the programs for the options' place and runs the startup program. The program outlives
  // the object. Throws what TrainingMetrics and the executor throw.
  CompiledTraining(const TrainingProgram* program, const TrainerOptions& options);
  CompiledTraining(const CompiledTraining&) = delete;
  CompiledTraining& operator=(const CompiledTraining&) = delete;

  const TrainingMetrics& metrics() const { return metrics_; }
  Scope& scope() { return executor_.scope(); }
  const Scope& scope() const { return executor_.scope(); }
  // Returns whether the program averages parameters.
  bool is_averaged() const { return average_.has_value(); }
  // Returns the costs of the training step's plans.
  PreparationStatistics preparation() const { return training_->preparation(); }

  // Compiles both programs again, in another way.
  void Compile(const CompileOptions& options);
  // Makes the plans for all batches of readers that know the shapes of their batches.
  void Prepare(const Reader& train, const Reader& validation);
  // Runs a training step. The result has fetched metrics().training_fetches() and is valid until
  // the next call.
  const BoundProgram& Step(const FeedList& feeds) { return training_->Step(feeds); }
  // Returns what CompiledProgram::GatherScope returns. All ranks call it.
  std::unique_ptr<Scope> GatherScope() { return training_->GatherScope(); }
  // Returns what training::Evaluate returns of the test program.
  MetricValues Evaluate(Reader* validation, Communicator* ranks);
  // Replaces the weights by their averages (training::ApplyAverage). Returns nullptr if the program
  // averages nothing.
  std::unique_ptr<ReplacedValues> ApplyAverages();
  // Returns the WeightsHash of the test program's persistables.
  std::string WeightsHash() const;

 private:
  const TrainingProgram& program_;
  Executor executor_;
  TrainingMetrics metrics_;
  std::optional<BoundFeeds> training_;
  std::optional<BoundFeeds> evaluation_;
  std::optional<CompiledAverage> average_;  // none if the program averages nothing
};

}  // namespace skiff::training
