// The images of a dataset as the samples of a reader.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "framework/training/sample_source.h"
#include "models/common/augmentation.h"
#include "models/common/dataset.h"

namespace skiff::models {

// Normalises the images of a dataset and changes them at random. The caller keeps the dataset
// alive.
class ImageSource : public training::SampleSource {
 public:
  // The names of the fields: float32 [channels, height, width] and int64 [1].
  static constexpr const char* kImage = "image";
  static constexpr const char* kLabel = "label";

  ImageSource(const ImageDataset* dataset, Normalization normalization,
              const AugmentationOptions& augmentation = {}, uint64_t seed = 0)
      : dataset_(dataset),
        normalization_(std::move(normalization)),
        augmentation_(augmentation),
        seed_(seed) {}

  int64_t size() const override { return dataset_->size(); }
  std::vector<training::FeedShape> fields() const override {
    return {{kImage, {dataset_->channels, dataset_->height, dataset_->width}, DType::kFloat32},
            {kLabel, {1}, DType::kInt64}};
  }
  void Read(int64_t sample, int64_t epoch, int64_t row, std::span<Tensor> fields) const override {
    WriteImage(*dataset_, sample, normalization_,
               DrawAugmentation(augmentation_, seed_, epoch, sample),
               training::RowOf<float>(fields[0], row));
    training::RowOf<int64_t>(fields[1], row)[0] = dataset_->labels[static_cast<size_t>(sample)];
  }

 private:
  const ImageDataset* dataset_;
  Normalization normalization_;
  AugmentationOptions augmentation_;
  uint64_t seed_;
};

}  // namespace skiff::models
