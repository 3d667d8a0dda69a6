#include "tests/models/common/short_training.h"

#include "framework/base/element_count.h"
#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "framework/io/parameters.h"
#include "framework/io/weights_hash.h"
#include "models/common/augmentation.h"

namespace skiff::models {
namespace {

Tensor NormalizedBatch(const ImageDataset& images) {
  Tensor batch({images.size(), images.channels, images.height, images.width}, DType::kFloat32);
  const Normalization normalization = MeasureNormalization(images);
  const auto elements = static_cast<size_t>(images.image_elements());
  for (int64_t i = 0; i < images.size(); ++i) {
    WriteImage(images, i, normalization, {},
               batch.values<float>().subspan(static_cast<size_t>(i) * elements, elements));
  }
  return batch;
}

}  // namespace

ShortTraining TrainShortly(const BuildLogits& logits, const ShortTrainingOptions& options) {
  const ImageDataset images = GenerateImages(options.images);
  const ClassifierProgram program =
      BuildClassifier(images, logits, options.optimization, options.seed);
  Executor executor;
  executor.Run(*program.startup);
  const Tensor label = Tensor::FromValues<int64_t>({images.size(), 1}, images.labels);
  CompiledProgram compiled = executor.Compile(*program.main);
  BoundProgram bound = compiled.Bind(
      {{program.image, NormalizedBatch(images)}, {program.label, label}}, {program.loss});
  ShortTraining training;
  for (int i = 0; i < options.steps; ++i) {
    bound.Step();
    training.losses.push_back(bound.fetch(0).Item<float>());
  }
  training.weights_hash = WeightsHash(executor.scope(), PersistableNames(*program.main));
  return training;
}

NetworkShape ShapeOf(const BuildLogits& logits, const std::vector<int64_t>& image_dims) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  NetworkShape shape;
  shape.output_dims = logits(layers::Data("image", image_dims), 10).dims();
  for (const auto& var : main.root()->vars()) {
    if (var->is_parameter && var->trainable) shape.parameters += ElementCount(var->dims);
  }
  for (const auto& op : main.root()->ops()) ++shape.ops[op->type];
  return shape;
}

}  // namespace skiff::models
