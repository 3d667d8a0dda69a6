// Lowers the learning rate when a metric stops getting better.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "framework/training/callback.h"

namespace skiff::training {

struct PlateauOptions {
  std::string metric = "loss";  // of the validation, for a Trainer
  bool larger_is_better = false;
  double factor = 0.1;    // by which the rate is multiplied, in (0, 1)
  int64_t patience = 10;  // after so many values in a row that aren't better, the next one counts
  // A value is better than the best before if the difference exceeds this margin, or this share of
  // the best value.
  double threshold = 1e-4;
  bool is_relative = true;  // the threshold is a share
  int64_t cooldown = 0;     // so many values after a reduction don't count as bad
  double min_rate = 0;      // the rate gets no lower
  double epsilon = 1e-8;    // a reduction by no more than this is left out
  // The rate, as of training::SetLearningRate; empty: that of the training.
  std::string variable = {};
};

// The rule is that of PyTorch's ReduceLROnPlateau. A Trainer that has it as a callback applies it
// after each evaluation of the parameters (not of averages). In a loop of one's own:
//
//   ReduceOnPlateau plateau({.patience = 3, .variable = rate.name()});
//   …
//   plateau.Add(validation_loss, &executor.scope());
class ReduceOnPlateau final : public Callback {
 public:
  // Throws an Error (kInvalidArgument) for an option out of range.
  explicit ReduceOnPlateau(PlateauOptions options);

  // Takes the next value of the metric, and lowers the rate in the scope if it is time. Returns
  // whether it did. A NaN isn't better than any value. Throws what SetLearningRate throws.
  bool Add(double value, Scope* scope);

  // Throws what Add throws, and an Error (kNotFound) if there is no such metric.
  void OnEvaluation(const EvaluationReport& report, TrainingControl* control) override;
  std::map<std::string, std::string> State() const override;
  void Restore(const std::map<std::string, std::string>& state) override;
  // "ReduceOnPlateau of loss"
  std::string Name() const override { return "ReduceOnPlateau of " + options_.metric; }

 private:
  bool IsBetter(double value) const;
  bool Add(double value, const std::string& variable, Scope* scope);

  PlateauOptions options_;
  std::optional<double> best_;
  int64_t bad_ = 0;       // values in a row that weren't better
  int64_t cooldown_ = 0;  // values that don't count yet
};

}  // namespace skiff::training
