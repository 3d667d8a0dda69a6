// Where a BatchReader takes its samples from: a numbered collection of (input, label).
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "framework/tensor/shape.h"
#include "models/common/augmentation.h"
#include "models/common/dataset.h"

namespace skiff::models {

// A source is const while it is read: several threads may.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual int64_t size() const = 0;
  // The extents of one input, without the batch.
  virtual Shape input_shape() const = 0;
  // Writes a sample as it is in this epoch. `sample` in [0, size()). May throw.
  virtual void Read(int64_t sample, int64_t epoch, std::span<float> input,
                    int64_t* label) const = 0;
};

// The images of a dataset that the caller keeps alive, normalised and changed at random.
class ImageSource : public SampleSource {
 public:
  ImageSource(const ImageDataset* dataset, Normalization normalization,
              const AugmentationOptions& augmentation = {}, uint64_t seed = 0)
      : dataset_(dataset),
        normalization_(std::move(normalization)),
        augmentation_(augmentation),
        seed_(seed) {}

  int64_t size() const override { return dataset_->size(); }
  Shape input_shape() const override {
    return {dataset_->channels, dataset_->height, dataset_->width};
  }
  void Read(int64_t sample, int64_t epoch, std::span<float> input, int64_t* label) const override {
    WriteImage(*dataset_, sample, normalization_,
               DrawAugmentation(augmentation_, seed_, epoch, sample), input);
    *label = dataset_->labels[sample];
  }

 private:
  const ImageDataset* dataset_;
  Normalization normalization_;
  AugmentationOptions augmentation_;
  uint64_t seed_;
};

}  // namespace skiff::models
