// Generated images of two data streams, read in batches, for tests of trainings.
#pragma once

#include <cstdint>

#include "models/common/batch_reader.h"
#include "models/common/dataset.h"
#include "models/common/generated_images.h"
#include "models/common/sample_source.h"

namespace skiff::models {

// Training images of 1 x 12 x 12, shifted by up to a pixel, and validation images.
struct ImageTraining {
  ImageTraining(int64_t train_count, int64_t validation_count, int64_t batch_size)
      : train_images(
            GenerateImages({.images = train_count, .channels = 1, .height = 12, .width = 12})),
        validation_images(GenerateImages({.images = validation_count,
                                          .channels = 1,
                                          .height = 12,
                                          .width = 12,
                                          .stream = DataStream::kValidationImages})),
        train_source(&train_images, MeasureNormalization(train_images), {.padding = 1}, 5),
        validation_source(&validation_images, MeasureNormalization(train_images)),
        train(&train_source,
              {.batch_size = batch_size, .shuffle = true, .drop_last = true, .seed = 5}),
        validation(&validation_source, {.batch_size = batch_size}) {}

  ImageDataset train_images;
  ImageDataset validation_images;
  ImageSource train_source;
  ImageSource validation_source;
  BatchReader train;
  BatchReader validation;
};

}  // namespace skiff::models
