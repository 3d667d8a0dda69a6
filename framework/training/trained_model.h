// The inference model that a training saves.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/tensor/scope.h"
#include "framework/training/trainer_options.h"
#include "framework/training/training_program.h"

namespace skiff::training {

class TrainedModel {
 public:
  // Both arguments outlive the model. Makes a program in half if `saved_precision` of the options
  // asks for it. Throws an Error (kNotFound) if an entry of saved_precision.keep_float32 fits
  // nothing in the main program, and what MakeHalfModel throws.
  TrainedModel(const TrainingProgram* program, const TrainerOptions* options);

  // Returns the program that Save prunes to the model.
  const Program& program() const;
  // Saves the model with the weights in the scope, and the options' `model_files` in the same
  // directory.
  // Throws what SaveInferenceModel, ValuesFor and AtomicWriteFile throw.
  void Save(const std::string& directory, const Scope& scope) const;
  // Returns the names of the files that Save writes.
  std::vector<std::string> FileNames() const;

 private:
  const TrainingProgram& program_;
  const TrainerOptions& options_;
  std::unique_ptr<Program> half_;  // nullptr: the model is float32
};

}  // namespace skiff::training
