// Networks that classify texts of any length, on ragged batches.
#pragma once

#include <cstdint>
#include <string>

#include "framework/builder/variable.h"
#include "framework/training/optimization.h"
#include "framework/training/training_program.h"

namespace skiff::models {

// The file beside a saved model that has its vocabulary.
inline constexpr const char* kVocabularyFile = "vocabulary.txt";

struct TextClassifierOptions {
  // cnn   filters over 3, 4 and 5 tokens, `hidden` of each, and the largest value of each filter
  //       (Kim 2014, "Convolutional Neural Networks for Sentence Classification")
  // gru, lstm   a recurrence of width `hidden` forwards, another backwards, and the largest value
  //       of each unit
  std::string network = "cnn";
  int64_t vocabulary = 0;  // must be set
  int64_t classes = 2;
  int64_t embedding = 128;
  int64_t hidden = 128;
  float dropout = 0.5f;
};

// Appends the network to the default programs: ids are ragged, [tokens] int64. Returns the scores
// of the classes, [sequences, classes]. Throws an Error (kInvalidArgument) for another network, for
// a size that CheckSizes refuses, less than two classes, and a dropout outside [0, 1).
Variable TextClassifier(const Variable& ids, const TextClassifierOptions& options);

// The feeds are those of training::SequenceReader. The metric that decides is the accuracy; the
// saved model reads ids and gives the probabilities of the classes [sequences, classes]. Throws
// what TextClassifier and Optimize throw.
training::TrainingProgram BuildTextClassifier(const TextClassifierOptions& options,
                                              const training::OptimizationOptions& optimization,
                                              uint64_t seed);

}  // namespace skiff::models
