#include "models/common/classifier_program.h"

#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "models/common/image_source.h"
#include "models/common/training_programs.h"

namespace skiff::models {

ClassifierProgram BuildClassifier(const ImageDataset& dataset, const BuildLogits& build_logits,
                                  const training::OptimizationOptions& options, uint64_t seed) {
  ClassifierProgram result{EmptyTraining(options, seed)};
  const ProgramGuard guard(result.main.get(), result.startup.get());

  const Variable image =
      layers::Data(ImageSource::kImage, {-1, dataset.channels, dataset.height, dataset.width});
  const Variable label = layers::Data(ImageSource::kLabel, {-1, 1}, DType::kInt64);
  const Variable loss = AddClassification(build_logits(image, dataset.classes), label, &result);
  result.image = image;
  result.label = label;
  result.probabilities = result.model_outputs[0];
  result.accuracy = result.metrics[0].variable;
  result.model_inputs = {result.image};
  result.test = result.main->CloneForTest();
  AddOptimization(loss, options, &result);
  return result;
}

}  // namespace skiff::models
