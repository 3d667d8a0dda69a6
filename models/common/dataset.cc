#include "models/common/dataset.h"

#include <cmath>

#include "framework/base/error.h"

namespace skiff::models {
namespace {

ImageDataset Part(const ImageDataset& dataset, int64_t begin, int64_t end) {
  ImageDataset part;
  part.name = dataset.name;
  part.channels = dataset.channels;
  part.height = dataset.height;
  part.width = dataset.width;
  part.classes = dataset.classes;
  const int64_t elements = dataset.image_elements();
  part.pixels.assign(dataset.pixels.begin() + begin * elements,
                     dataset.pixels.begin() + end * elements);
  part.labels.assign(dataset.labels.begin() + begin, dataset.labels.begin() + end);
  return part;
}

}  // namespace

ImageDataset FirstImages(const ImageDataset& dataset, int64_t count) {
  SKIFF_ENFORCE(count >= 1 && count <= dataset.size(), kInvalidArgument, dataset.name,
                ": the first ", count, " of ", dataset.size(),
                " images requested: expected at least one, and no more than there are");
  return Part(dataset, 0, count);
}

std::pair<ImageDataset, ImageDataset> HoldBackLast(const ImageDataset& dataset, int64_t count) {
  SKIFF_ENFORCE(count >= 1 && count < dataset.size(), kInvalidArgument, dataset.name, ": ", count,
                " of ", dataset.size(),
                " images to hold back: expected to hold back and to keep at least one");
  const int64_t kept = dataset.size() - count;
  return {Part(dataset, 0, kept), Part(dataset, kept, dataset.size())};
}

Normalization MeasureNormalization(const ImageDataset& dataset) {
  SKIFF_ENFORCE(dataset.size() > 0, kInvalidArgument, dataset.name,
                ": no images to measure mean and deviation of");
  const int64_t plane = int64_t{dataset.height} * dataset.width;
  // Sums of integers are exact, so the variance can be the mean square less the squared mean
  // without cancellation that matters. 64 bits hold the squares of 10^14 pixels.
  std::vector<int64_t> sums(dataset.channels), squares(dataset.channels);
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const auto image = dataset.Image(i);
    for (int32_t c = 0; c < dataset.channels; ++c) {
      for (const uint8_t pixel : image.subspan(c * plane, plane)) {
        sums[c] += pixel;
        squares[c] += int64_t{pixel} * pixel;
      }
    }
  }
  Normalization result;
  const double count = static_cast<double>(dataset.size() * plane);
  for (int32_t c = 0; c < dataset.channels; ++c) {
    const double mean = static_cast<double>(sums[c]) / count;
    const double variance = static_cast<double>(squares[c]) / count - mean * mean;
    // A channel of one value would make the scale infinite. Rounding leaves at most about 1e-11 of
    // its variance.
    result.mean.push_back(static_cast<float>(mean / 255));
    result.deviation.push_back(variance > 1e-6 ? static_cast<float>(std::sqrt(variance) / 255)
                                               : 1.0f);
  }
  return result;
}

}  // namespace skiff::models
