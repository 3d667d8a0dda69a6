// The training data of the line reader: lines of text and their images, of which some are held back
// to validate on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/training/reader.h"
#include "models/common/alphabet.h"
#include "models/line_reader/line_batches.h"

namespace skiff::models {

// The name of the data that needs no file.
inline constexpr const char* kGeneratedLines = "generated";

struct LineDataOptions {
  // Or a list of images: on each line a path, relative to the list's folder, a tab and the text.
  std::string data = kGeneratedLines;
  double held_back = 0.1;          // the share of a list to validate on: its end
  int64_t lines = 4000;            // generated lines to train on
  int64_t validation_lines = 400;  // generated lines to validate on
  int64_t batch_size = 32;
  uint64_t seed = 1;
};

class LineData {
 public:
  // Reads the list and its images. Throws an Error that names the list and the line:
  // - kDataLoss for a line without a tab or without a text, and for a list without lines;
  // - kInvalidArgument for an image that is too narrow for its text;
  // - what ReadTextFile and ReadPgm throw.
  // Throws an Error (kInvalidArgument) for numbers of lines below 1, and for a held_back that
  // leaves no line to train or to validate on.
  explicit LineData(const LineDataOptions& options);
  ~LineData();

  // The characters of all texts: one of the held-back ones needs an id, too.
  const Alphabet& alphabet() const { return alphabet_; }
  // The error rate, on the held-back lines, of who knows how long each line is and reads the most
  // frequent character everywhere.
  double constant_error_rate() const { return constant_error_rate_; }
  // In a few words, such as "4000 to train, 400 to validate, 37 different characters".
  std::string extent() const;
  // Such as "most frequent character 87.12 %".
  std::string baselines() const;
  // Readers of the feeds of LineBatches. They read the data of this object. Generated lines to
  // train on are drawn anew in each epoch.
  std::unique_ptr<training::Reader> TrainReader() const;
  std::unique_ptr<training::Reader> ValidationReader() const;

 private:
  struct Sources;
  LineData(const LineDataOptions& options, Sources sources);

  LineDataOptions options_;
  Alphabet alphabet_;
  std::unique_ptr<const LineSource> train_;
  std::unique_ptr<const LineSource> validation_;
  double constant_error_rate_ = 0;
};

// A line and its image, of kLineHeight rows.
struct ReadableLine {
  std::string text = {};
  LineImage image = {};
};

// Returns generated line `number` of those to validate on.
ReadableLine GeneratedLine(uint64_t seed, int64_t number);

}  // namespace skiff::models
