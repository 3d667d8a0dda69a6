// The programs of ERNIE's pre-training: masked tokens and tasks about the order of sentences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/training/optimization.h"
#include "framework/training/training_program.h"
#include "models/ernie/ernie.h"

namespace skiff::models {

struct PretrainingShape {
  int64_t length = 128;  // of a sequence
  int64_t masked = 20;   // places of masked tokens in a sequence, padding included
  // Learned beside masked words, each from the sequences that are of it.
  std::vector<SentenceTaskShape> sentence_tasks = {{.name = "next_sentence"}};
};

struct SentenceTaskLoss {
  std::string name;   // of the task
  Variable scores;    // [N, classes]
  Variable loss;      // [1], the mean over the sequences of this task that have a label
  Variable accuracy;  // [1], of the sequences of this task
  Variable weight;    // [1], how many these are
};

// The feeds besides ErnieInputs: masked_positions, masked_labels and masked_weights
// [N, masked], the places as rows of the [N * L] tokens, and sentence_label [N, 1]. Labels of
// unused places are -100, which the loss ignores, and their weights are 0. A sentence_label is -100
// for a sequence without one; if there is one task, for all sequences of a batch or none.
struct PretrainingLoss {
  ErnieInputs inputs;
  Variable places;           // masked_positions
  Variable word_scores;      // [N * masked, vocabulary]
  Variable loss;             // [1], the sum of the losses of all tasks
  Variable word_loss;        // [1], the mean over masked tokens, weighted
  Variable word_accuracy;    // [1], of masked tokens
  Variable word_weight;      // [1], the sum of the weights
  Variable answer_accuracy;  // [1], of sequences with all masked tokens right
  Variable sequences;        // [1], the number of sequences with masked tokens
  std::vector<SentenceTaskLoss> sentences;
};

// Appends network and losses to the default programs.
PretrainingLoss AppendErniePretraining(const ErnieOptions& options, const PretrainingShape& shape);

// Returns the programs of a training. The metric that decides is the accuracy of masked tokens.
// Throws an Error (kInvalidArgument) for bad options and shapes, and what Optimize throws.
training::TrainingProgram BuildErniePretraining(const ErnieOptions& options,
                                                const PretrainingShape& shape,
                                                const training::OptimizationOptions& optimization,
                                                uint64_t seed);

}  // namespace skiff::models
