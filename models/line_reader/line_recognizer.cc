#include "models/line_reader/line_recognizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/io/file.h"
#include "framework/text/ctc_beam_search.h"
#include "models/line_reader/line_batches.h"
#include "models/line_reader/line_reader.h"

namespace skiff::models {
namespace {

Alphabet ReadAlphabet(const std::string& path) { return Alphabet::Parse(ReadFile(path), path); }

// Returns the logits of image i, [its steps, classes], of logits [steps, images, classes].
std::vector<float> LogitsOf(std::span<const float> logits, int64_t steps, int64_t images,
                            int64_t classes, int64_t i) {
  std::vector<float> of_image;
  for (int64_t t = 0; t < steps; ++t) {
    const auto from = logits.subspan(static_cast<size_t>((t * images + i) * classes),
                                     static_cast<size_t>(classes));
    of_image.insert(of_image.end(), from.begin(), from.end());
  }
  return of_image;
}

LineReading ReadingOf(const text::CtcLabelling& found, const Alphabet& alphabet) {
  std::vector<int64_t> ids = found.labels;
  for (int64_t& id : ids) --id;
  return {.text = alphabet.Decode(ids), .probability = std::exp(found.score)};
}

}  // namespace

LineRecognizer::LineRecognizer(const std::string& model_directory)
    : alphabet_(ReadAlphabet(JoinPath(model_directory, kAlphabetFile))), model_(model_directory) {
  model_.CheckIs("a line reader", {LineBatches::kImage, LineBatches::kSteps}, 1);
  model_.Compile();
}

std::vector<LineReading> LineRecognizer::Read(std::span<const LineImage> images,
                                              int64_t beam_width) {
  if (images.empty()) return {};
  const PaddedImages padded = Padded(images);
  const ModelOutput found =
      model_.Run({{LineBatches::kImage, padded.images}, {LineBatches::kSteps, padded.steps}})[0];
  const int64_t count = std::ssize(images);
  const int64_t classes = alphabet_.size() + 1;
  const int64_t padded_steps = StepsOf(padded.images.shape()[3]);
  const std::vector<int64_t> dims = {padded_steps, count, classes};
  const float most = std::numeric_limits<float>::max();
  const std::span<const float> logits = found.Floats("logits", dims, -most, most);
  std::vector<LineReading> readings;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t steps = StepsOf(images[static_cast<size_t>(i)].width);
    readings.push_back(
        ReadingOf(text::DecodeCtc(LogitsOf(logits, steps, count, classes, i), classes,
                                  {.beam_width = beam_width, .blank = kBlankClass})[0],
                  alphabet_));
  }
  return readings;
}

}  // namespace skiff::models
