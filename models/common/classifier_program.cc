#include "models/common/classifier_program.h"

#include <utility>

#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/metric.h"
#include "framework/builder/program_guard.h"
#include "models/common/image_source.h"

namespace skiff::models {

ClassifierProgram BuildClassifier(const ImageDataset& dataset, const BuildLogits& build_logits,
                                  const training::OptimizationOptions& options, uint64_t seed) {
  training::CheckOptimizationOptions(options);
  ClassifierProgram result;
  result.main = std::make_unique<Program>();
  result.startup = std::make_unique<Program>();
  result.main->seed = seed;
  result.startup->seed = seed;
  const ProgramGuard guard(result.main.get(), result.startup.get());

  const Variable image =
      layers::Data(ImageSource::kImage, {-1, dataset.channels, dataset.height, dataset.width});
  const Variable label = layers::Data(ImageSource::kLabel, {-1, 1}, DType::kInt64);
  const Variable logits = build_logits(image, dataset.classes);
  // The loss takes the logits, since its own softmax is stable for large ones. The probabilities
  // are for the accuracy and for inference.
  const Variable probabilities = layers::Softmax(logits);
  const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(logits, label));
  const Variable accuracy = layers::Accuracy(probabilities, label);
  result.image = image;
  result.label = label;
  result.probabilities = probabilities;
  result.loss = loss;
  result.accuracy = accuracy;
  result.metrics = {
      {.name = "accuracy", .variable = result.accuracy, .percent = true, .larger_is_better = true}};
  result.decisive_metric = "accuracy";
  result.model_inputs = {result.image};
  result.model_outputs = {result.probabilities};
  // Cloned before the optimizer and the backward ops are appended, which evaluation must not run.
  result.test = result.main->CloneForTest();

  training::Optimization optimization = training::Optimize(loss, options);
  result.learning_rate = optimization.learning_rate;
  result.average = std::move(optimization.average);
  return result;
}

}  // namespace skiff::models
