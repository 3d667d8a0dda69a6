// A network that reads lines of text from images, without being told where the characters are:
// convolutions, a recurrence in both directions over the columns of the image, and a loss (CTC)
// that sums over all places where the characters may be. After B. Shi, X. Bai, C. Yao, "An
// end-to-end trainable neural network for image-based sequence recognition", 2015 (CRNN), with
// smaller convolutions, one layer of LSTM instead of two, and lines of 16 rows instead of 32.
#pragma once

#include <cstdint>

#include "framework/builder/variable.h"
#include "framework/training/optimization.h"
#include "framework/training/training_program.h"

namespace skiff::models {

// The class that stands between characters. The others are the ids of characters plus 1.
inline constexpr int64_t kBlankClass = 0;

inline constexpr const char* kAlphabetFile = "alphabet.txt";  // of a saved model

struct LineReaderOptions {
  int64_t characters = 0;  // of the alphabet; must be set
  int64_t filters = 16;  // of the first convolution; the others have twice and three times as many
  int64_t hidden = 64;   // width of the state in each direction
  float dropout = 0.1f;  // of what the classes are chosen by
};

// Returns logits [steps, images, characters + 1] for images [images, 1, kLineHeight, width], of
// which steps [images] are text (PaddedImages). Throws an Error (kInvalidArgument) for a size below
// 1, and what the layers throw.
Variable LineReader(const Variable& images, const Variable& steps,
                    const LineReaderOptions& options);

// Returns the mean loss of a batch that LineBatches feeds, whose variables it makes.
Variable LineReaderLoss(const LineReaderOptions& options);

// Returns a training on LineBatches. It reports "loss" and "character_error_rate", of the most
// probable path, which decides. The saved model has the feeds of images and steps, and returns the
// logits. Throws what LineReader and CheckOptimizationOptions throw.
training::TrainingProgram BuildLineReader(const LineReaderOptions& options,
                                          const training::OptimizationOptions& optimization,
                                          uint64_t seed);

}  // namespace skiff::models
