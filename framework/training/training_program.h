// The programs of a training, made from a model's network.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/builder/optimizer/parameter_average.h"
#include "framework/ir/api/program.h"
#include "framework/precision/half_report.h"
#include "framework/training/metric.h"

namespace skiff::training {

// Variables are given by their names.
struct TrainingProgram {
  std::unique_ptr<Program> main = {};     // a training step
  std::unique_ptr<Program> startup = {};  // initialises what `main` keeps
  std::unique_ptr<Program> test = {};     // evaluation, with the same parameters
  std::string loss = {};                  // one number; reported as the metric "loss"
  std::string loss_weight = {};           // as Metric::weight
  std::vector<Metric> metrics = {};       // reported in addition to the loss; in both programs
  // The metric that decides which epoch is best, in validation. "loss": the lowest.
  std::string decisive_metric = "loss";
  std::string learning_rate = {};  // one number; in `main` only
  // The program that is saved as the inference model, on the same parameters. nullptr: `test`.
  std::unique_ptr<Program> model = nullptr;
  // The inputs and outputs of the saved inference model.
  std::vector<std::string> model_inputs = {};
  std::vector<std::string> model_outputs = {};
  // The average that `main` keeps. nullptr: none.
  std::unique_ptr<optimizer::ParameterAverage> average = {};
  // What Minimize has rewritten; nothing in float32.
  std::optional<HalfReport> half = {};
};

// For a training whose `main` Minimize has rewritten to half after `test` was cloned: makes `test`
// compute what `main` does. The saved model stays float32: it is the old `test`, if the training
// has no other.
void EvaluateInHalf(TrainingProgram* program);

}  // namespace skiff::training
