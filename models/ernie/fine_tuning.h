// The programs that train an ERNIE to classify sequences, as a rule from pre-trained weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/training/optimization.h"
#include "framework/training/training_program.h"
#include "models/ernie/ernie_options.h"

namespace skiff::models {

// Starts the names of the classifier's parameters.
inline constexpr const char* kErnieClassifier = "cls_out";

// The feeds are those of ErnieInputs and label [N, 1] int64. The metric that decides is the
// accuracy; the saved model gives the probabilities of the classes [N, classes]. Throws an Error
// (kInvalidArgument) for bad options, a bad length or less than two classes, and what Optimize
// throws.
training::TrainingProgram BuildErnieFineTuning(const ErnieOptions& options, int64_t length,
                                               int64_t classes,
                                               const training::OptimizationOptions& optimization,
                                               uint64_t seed);

// How the names of the parameters begin that a pre-trained model may lack: the classifier, and the
// layer below it, which only sentence tasks train.
std::vector<std::string> NewParametersOfFineTuning();

}  // namespace skiff::models
