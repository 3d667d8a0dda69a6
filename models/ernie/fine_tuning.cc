#include "models/ernie/fine_tuning.h"

#include <memory>
#include <utility>

#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/metric.h"
#include "framework/builder/program_guard.h"
#include "models/ernie/ernie.h"

namespace skiff::models {
namespace {

constexpr const char* kHead = "cls_out";

}  // namespace

training::TrainingProgram BuildErnieFineTuning(const ErnieOptions& options, int64_t length,
                                               int64_t classes,
                                               const training::OptimizationOptions& optimization,
                                               uint64_t seed) {
  training::CheckOptimizationOptions(optimization);
  training::TrainingProgram program;
  program.main = std::make_unique<Program>();
  program.startup = std::make_unique<Program>();
  program.main->seed = program.startup->seed = seed;
  const ProgramGuard guard(program.main.get(), program.startup.get());
  const ErnieInputs inputs = ErnieFeeds(options, length);
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  const Variable pooled = ErniePool(ErnieEncoder(inputs, options), options);
  const Variable scores = ErnieSequenceScores(pooled, classes, kHead, options);
  const Variable probabilities = layers::Softmax(scores);
  const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(scores, label));
  const Variable accuracy = layers::Accuracy(probabilities, label);
  program.loss = loss.name();
  program.metrics = {
      {.name = "accuracy", .variable = accuracy.name(), .percent = true, .larger_is_better = true}};
  program.decisive_metric = "accuracy";
  program.model_inputs = InputNames(inputs, options);
  program.model_outputs = {probabilities.name()};
  program.test = program.main->CloneForTest();
  training::Optimization trained = training::Optimize(loss, optimization);
  program.learning_rate = trained.learning_rate.name();
  program.average = std::move(trained.average);
  return program;
}

std::vector<std::string> NewParametersOfFineTuning() { return {kHead, kErniePooler}; }

}  // namespace skiff::models
