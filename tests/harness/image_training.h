// Generated training and validation images, read in batches, for tests of trainings.
#pragma once

#include <cstdint>
#include <memory>

#include "framework/training/prefetching_reader.h"
#include "framework/training/sample_reader.h"
#include "models/common/dataset.h"
#include "models/common/generated_images.h"
#include "models/common/image_source.h"

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
                                          .stream = training::DataStream::kValidationSamples})),
        train_source(&train_images, MeasureNormalization(train_images), {.padding = 1}, 5),
        validation_source(&validation_images, MeasureNormalization(train_images)),
        train(std::make_unique<training::SampleReader>(
            &train_source,
            training::SampleReaderOptions{
                .batch_size = batch_size, .shuffle = true, .drop_last = true, .seed = 5})),
        validation(std::make_unique<training::SampleReader>(
            &validation_source, training::SampleReaderOptions{.batch_size = batch_size})) {}

  ImageDataset train_images;
  ImageDataset validation_images;
  ImageSource train_source;
  ImageSource validation_source;
  training::PrefetchingReader train;
  training::PrefetchingReader validation;
};

}  // namespace skiff::models
