// Reads lines of text from images with a trained line reader.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/common/alphabet.h"
#include "models/common/saved_model.h"
#include "models/line_reader/line_image.h"

namespace skiff::models {

// What an image says, and the probability that the network gives to this text.
struct LineReading {
  std::string text = {};
  double probability = 0;
};

class LineRecognizer {
 public:
  // Loads a model that a training saved (OUTPUT_DIR/model). Throws an Error: what
  // LoadInferenceModel and Alphabet::Parse throw; kInvalidArgument if the model isn't a line
  // reader.
  explicit LineRecognizer(const std::string& model_directory);

  // Returns the reading of each image, which must have kLineHeight rows, by prefix beam search
  // (text::DecodeCtc) of this width. Throws an Error: what DecodeCtc throws; what ModelOutput
  // throws if the model returns anything else than logits of the alphabet.
  std::vector<LineReading> Read(std::span<const LineImage> images, int64_t beam_width);

 private:
  Alphabet alphabet_;
  SavedModel model_;
};

}  // namespace skiff::models
