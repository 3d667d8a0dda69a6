// The parts that the training programs of all models share.
#pragma once

#include <cstdint>
#include <source_location>

#include "framework/builder/variable.h"
#include "framework/training/optimization.h"
#include "framework/training/training_program.h"

namespace skiff::models {

// Returns a training whose programs `main` and `startup` are empty and have the seed. Throws the
// Errors of CheckOptimizationOptions, so that a mistake in the options is found before a network is
// built.
training::TrainingProgram EmptyTraining(const training::OptimizationOptions& optimization,
                                        uint64_t seed);

// Appends the mean cross-entropy of a batch and its accuracy to the default programs, which are the
// programs of `program`, and makes `program` report both: the accuracy decides. The model's output
// is the probabilities [N, classes]. scores [N, classes] are logits, label [N, 1] is int64. Errors
// in the data name `site`. Returns the loss. Throws the Errors of the layers.
Variable AddClassification(const Variable& scores, const Variable& label,
                           training::TrainingProgram* program,
                           std::source_location site = std::source_location::current());

// Appends Optimize(loss, optimization) to the default programs, which are those of `program`, and
// notes learning rate and average there. Comes after program->test is cloned: an evaluation must
// not run the backward ops. In half, program->test becomes a clone of the rewritten program, and
// the clone from before becomes the saved model, if the program has no other. Throws what Optimize
// throws.
void AddOptimization(const Variable& loss, const training::OptimizationOptions& optimization,
                     training::TrainingProgram* program);

}  // namespace skiff::models
