// Batches of lines of text: images padded to a common width, and texts to a common length.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "framework/training/batch_list_reader.h"
#include "models/line_reader/line_image.h"

namespace skiff::models {

// The columns of an image that become one time step.
inline constexpr int64_t kColumnsPerStep = 2;

// Returns the time steps of an image.
constexpr int64_t StepsOf(int64_t width) { return (width + kColumnsPerStep - 1) / kColumnsPerStep; }

// Returns the images [images, 1, kLineHeight, width], with paper behind each, and their steps
// [images], int64. The width is a multiple of 32, so that few plans serve all batches. There is one
// image at least, and each has kLineHeight rows.
struct PaddedImages {
  Tensor images;
  Tensor steps;
};
PaddedImages Padded(std::span<const LineImage> images);

// Lines of text with numbers for characters.
class LineSource {
 public:
  virtual ~LineSource() = default;

  virtual int64_t size() const = 0;
  // Returns the ids of a line's characters, counted from 0.
  virtual std::span<const int64_t> TextOf(int64_t line) const = 0;
  // Returns about how wide the image is.
  virtual int64_t WidthOf(int64_t line) const = 0;
  // Returns the image of a line in an epoch, of kLineHeight rows.
  virtual LineImage ImageOf(int64_t line, int64_t epoch) const = 0;
};

// Feeds `image` and `steps` (PaddedImages), `label` [lines, length], int64, the ids plus 1 (0 is
// the blank of CTC) with zeros behind, and `label_length` [lines], int64. The length is a multiple
// of 8.
class LineBatches final : public training::BatchListReader {
 public:
  static constexpr const char* kImage = "image";
  static constexpr const char* kSteps = "steps";
  static constexpr const char* kLabel = "label";
  static constexpr const char* kLabelLength = "label_length";

  // Begins at the start of epoch 0. The source outlives the reader. Throws an Error
  // (kInvalidArgument) if the source has no lines, and for a batch_size below 1.
  LineBatches(const LineSource* source, int64_t batch_size, bool shuffle, uint64_t seed);

 private:
  std::vector<Samples> BatchesOf(int64_t epoch) const override;
  void Read(const Samples& samples, int64_t epoch, training::Batch* batch) const override;

  const LineSource* source_;
  training::LengthBatchOptions options_;
  std::vector<int64_t> widths_;
};

}  // namespace skiff::models
