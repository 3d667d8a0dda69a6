#include "models/common/training_programs.h"

#include <memory>
#include <utility>

#include "framework/builder/activation.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/metric_layers.h"

namespace skiff::models {

training::TrainingProgram EmptyTraining(const training::OptimizationOptions& optimization,
                                        uint64_t seed) {
  training::CheckOptimizationOptions(optimization);
  training::TrainingProgram program;
  program.main = std::make_unique<Program>();
  program.startup = std::make_unique<Program>();
  program.main->seed = program.startup->seed = seed;
  return program;
}

Variable AddClassification(const Variable& scores, const Variable& label,
                           training::TrainingProgram* program, std::source_location site) {
  // The loss takes the scores, since its own softmax is stable for large ones. The probabilities
  // are for the accuracy and for inference.
  const Variable probabilities = layers::Softmax(scores, -1, site);
  const Variable loss =
      layers::Mean(layers::SoftmaxWithCrossEntropy(scores, label, {}, site), site);
  const Variable accuracy = layers::Accuracy(probabilities, label, 1, site);
  program->loss = loss.name();
  program->metrics = {
      {.name = "accuracy", .variable = accuracy.name(), .percent = true, .larger_is_better = true}};
  program->decisive_metric = "accuracy";
  program->model_outputs = {probabilities.name()};
  return loss;
}

void AddOptimization(const Variable& loss, const training::OptimizationOptions& optimization,
                     training::TrainingProgram* program) {
  training::Optimization trained = training::Optimize(loss, optimization);
  program->learning_rate = trained.learning_rate.name();
  program->average = std::move(trained.average);
  program->half = std::move(trained.half);
  if (program->half) training::EvaluateInHalf(program);
}

}  // namespace skiff::models
