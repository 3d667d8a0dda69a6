// Code of the user's that a Trainer calls during a training.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "framework/tensor/scope.h"
#include "framework/training/metric.h"
#include "framework/training/training_program.h"
#include "framework/training/training_record.h"

namespace skiff::training {

struct StepReport {
  int64_t epoch = 0;  // all three counted from 1
  int64_t batch = 0;  // of the epoch
  int64_t step = 0;   // of the training
  int64_t samples = 0;
  double learning_rate = 0;
  // "loss" and the program's metrics, of this batch. Of several ranks, each reports its own batch;
  // `batch` and `step` then are those of the last rank.
  MetricValues metrics = {};
};

struct EvaluationReport {
  int64_t epoch = 0;  // counted from 1
  int64_t step = 0;   // steps of the training so far
  MetricValues metrics = {};
  bool is_averaged = false;  // with averaged parameters
};

// The running training, as a callback may change it.
class TrainingControl {
 public:
  TrainingControl(const TrainingProgram& program, Scope* scope)
      : program_(program), scope_(*scope) {}

  const TrainingProgram& program() const { return program_; }
  // Holds parameters, states of the optimizer and whatever else the programs keep. Steps use what a
  // callback assigns (Scope::Assign), and checkpoints hold it.
  Scope& scope() const { return scope_; }
  // Gives the training's learning rate another value. Throws what training::SetLearningRate throws.
  void SetLearningRate(double rate) const;
  // Has the training save a checkpoint and end before its next step, or, of several ranks, as soon
  // as a checkpoint can be made (trainer.h); one rank that calls it is enough. Run then returns
  // with finished = false, unless the last epoch is over. Resume goes on behind the last step.
  void Stop() { is_stopped_ = true; }

  bool is_stopped() const { return is_stopped_; }

 private:
  const TrainingProgram& program_;
  Scope& scope_;
  bool is_stopped_ = false;
};

// Of several ranks, each has callbacks of its own, which must change the training alike: only
// OnStep has other numbers on each rank. The trainer compares weights, learning rates and
// callbacks' states before each checkpoint, and throws an AgreedError (rank_agreement.h) if a rank
// has others.
//
// What a callback throws comes out of Trainer::Run. The newest checkpoint then stays the newest,
// and Resume repeats the steps since. Callbacks are called in the thread of the trainer.
class Callback {
 public:
  virtual ~Callback() = default;

  // Is called after each step, before the checkpoint of the step, if there is one.
  virtual void OnStep(const StepReport& /*report*/, TrainingControl* /*control*/) {}
  // Is called after each evaluation of an epoch: the evaluation of the parameters, then of their
  // averages.
  virtual void OnEvaluation(const EvaluationReport& /*report*/, TrainingControl* /*control*/) {}
  // Is called after the evaluations of an epoch, before its checkpoint. The record is the line of
  // the training log.
  virtual void OnEpoch(const TrainingRecord& /*record*/, TrainingControl* /*control*/) {}

  // Returns what Restore needs to go on as if there were no break. Checkpoints hold it. Empty: the
  // callback keeps nothing, and Restore isn't called.
  virtual std::map<std::string, std::string> State() const { return {}; }
  // Returns what checkpoints call the callback: its class, unless overridden. Resume refuses to
  // give a callback the state of one of another name.
  virtual std::string Name() const;
  // Takes such a state over. Throws an Error (kDataLoss) for anything else, and changes nothing
  // then.
  virtual void Restore(const std::map<std::string, std::string>& /*state*/) {}
};

// Gives the learning rate `variable` another value in the scope: one that learning_rate::Constant
// returned. The next step uses it. Throws an Error: kInvalidArgument if the rate is negative or not
// finite, or if the variable isn't one float32 or float64 number; kNotFound if the scope has no
// such variable, as with a schedule, which computes the rate in each step.
void SetLearningRate(const std::string& variable, double rate, Scope* scope);
// Returns the value of such a learning rate. Throws the same.
double LearningRateIn(const Scope& scope, const std::string& variable);

}  // namespace skiff::training
