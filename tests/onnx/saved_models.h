// The recurrent models of models/, small, with random weights: ragged batches, loops, branches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/io/api/tensor_map.h"
#include "framework/training/training_program.h"

namespace skiff::onnx_tests {

// A model as a training saves it.
struct SavedModel {
  std::string name;
  std::function<training::TrainingProgram()> build;
  // Of several runs, whose batches have other lengths.
  std::vector<TensorMap> feeds;
};

std::vector<SavedModel> SavedModels();

struct BuiltModel {
  training::TrainingProgram programs;
  std::unique_ptr<Executor> executor;  // whose scope has the weights
  std::vector<TensorMap> outputs;      // of each run

  // What is saved.
  const Program& program() const { return programs.model ? *programs.model : *programs.test; }
};

BuiltModel Build(const SavedModel& model);

}  // namespace skiff::onnx_tests
