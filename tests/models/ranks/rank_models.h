// Small trainings of all models, for tests that several ranks end with the bits of one process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/training/optimization.h"
#include "framework/training/reader.h"
#include "framework/training/training_program.h"

namespace skiff::models {

struct RankModel {
  std::string name;
  // Returns the programs of a training with these settings.
  std::function<training::TrainingProgram(const training::OptimizationOptions&)> program;
  // A new reader of the training's batches, from the start of epoch 0.
  std::function<std::unique_ptr<training::Reader>()> reader;
};

// Returns "mlp" (with dropout), "lenet", "resnet20" (batch norms), "vgg11", "ernie" (attention,
// dropout, tied weights), "text_classifier" (ragged), "char_rnn" (a loop, without
// carried states), "seq2seq" (ragged, with
// attention), and "words" (a table with sparse gradients).
std::vector<std::string> RankModelNames();
// Throws an Error (kNotFound) for any other name.
RankModel MakeRankModel(const std::string& name);

}  // namespace skiff::models
