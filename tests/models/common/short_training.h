// A classifier trained on a handful of generated images, for the tests of the models.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/common/classifier_program.h"
#include "models/common/generated_images.h"

namespace skiff::models {

struct ShortTrainingOptions {
  GeneratedImagesOptions images = {.images = 16, .channels = 1, .height = 12, .width = 12};
  training::OptimizationOptions optimization = {.learning_rate = 0.02f,
                                                .schedule = training::ScheduleKind::kConstant};
  int steps = 20;
  uint64_t seed = 1;
};

struct ShortTraining {
  std::vector<float> losses;  // of each step, before its update
  std::string weights_hash;   // of all persistables, after the last step
};

// Steps on one batch of all images.
ShortTraining TrainShortly(const BuildLogits& logits, const ShortTrainingOptions& options);

struct NetworkShape {
  std::vector<int64_t> output_dims;
  int64_t parameters = 0;              // elements of all trainable ones
  std::map<std::string, int64_t> ops;  // how many of each type
};

// Builds only the network, for images of these dims and ten classes.
NetworkShape ShapeOf(const BuildLogits& logits, const std::vector<int64_t>& image_dims);

}  // namespace skiff::models
