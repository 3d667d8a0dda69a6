#include "models/line_reader/line_batches.h"

#include <algorithm>

#include "framework/base/element_count.h"
#include "framework/base/error.h"

namespace skiff::models {
namespace {

constexpr int64_t kWidthMultiple = 32;
constexpr int64_t kLengthMultiple = 8;

int64_t RoundedUp(int64_t number, int64_t multiple) {
  return std::max<int64_t>(1, (number + multiple - 1) / multiple) * multiple;
}

void CopyRows(const LineImage& image, int64_t width, float* to) {
  for (int64_t row = 0; row < image.height; ++row)
    std::copy_n(image.ink.begin() + row * image.width, image.width, to + row * width);
}

// Sets `label` and `label_length`.
void SetTexts(const std::vector<std::span<const int64_t>>& texts, training::Batch* batch) {
  int64_t longest = 0;
  for (const auto& text : texts) longest = std::max<int64_t>(longest, std::ssize(text));
  const int64_t width = RoundedUp(longest, kLengthMultiple);
  std::vector<int64_t> labels;
  std::vector<int64_t> lengths;
  for (const auto& text : texts) {
    for (const int64_t id : text) labels.push_back(id + 1);
    lengths.push_back(std::ssize(text));
    labels.resize(lengths.size() * static_cast<size_t>(width), 0);
  }
  const int64_t count = std::ssize(lengths);
  batch->feeds.emplace_back(LineBatches::kLabel,
                            Tensor::FromValues<int64_t>({count, width}, labels));
  batch->feeds.emplace_back(LineBatches::kLabelLength,
                            Tensor::FromValues<int64_t>({count}, lengths));
}

}  // namespace

PaddedImages Padded(std::span<const LineImage> images) {
  int64_t widest = 0;
  for (const LineImage& image : images) widest = std::max(widest, image.width);
  const int64_t width = RoundedUp(widest, kWidthMultiple);
  const int64_t count = std::ssize(images);
  Tensor padded({count, 1, kLineHeight, width}, DType::kFloat32);
  std::ranges::fill(padded.values<float>(), 0.0f);
  std::vector<int64_t> steps;
  for (const LineImage& image : images) {
    CopyRows(image, width, padded.data<float>() + std::ssize(steps) * kLineHeight * width);
    steps.push_back(StepsOf(image.width));
  }
  return {std::move(padded), Tensor::FromValues<int64_t>({count}, steps)};
}

LineBatches::LineBatches(const LineSource* source, int64_t batch_size, bool shuffle, uint64_t seed)
    : source_(source),
      options_({.batch_size = batch_size,
                .most_tokens = kMaxElementCount,
                .shuffle = shuffle,
                .seed = seed}) {
  training::CheckLengthBatchOptions(options_);
  SKIFF_ENFORCE(source->size() >= 1, kInvalidArgument, "0 lines, expected at least 1");
  for (int64_t line = 0; line < source->size(); ++line) widths_.push_back(source->WidthOf(line));
  StartEpoch(0);
}

std::vector<training::BatchListReader::Samples> LineBatches::BatchesOf(int64_t epoch) const {
  return training::LengthBatches(widths_, options_, epoch);
}

void LineBatches::Read(const Samples& samples, int64_t epoch, training::Batch* batch) const {
  std::vector<LineImage> images;
  std::vector<std::span<const int64_t>> texts;
  for (const int64_t line : samples) {
    images.push_back(source_->ImageOf(line, epoch));
    texts.push_back(source_->TextOf(line));
  }
  PaddedImages padded = Padded(images);
  batch->feeds.clear();
  batch->feeds.emplace_back(kImage, std::move(padded.images));
  batch->feeds.emplace_back(kSteps, std::move(padded.steps));
  SetTexts(texts, batch);
}

}  // namespace skiff::models
