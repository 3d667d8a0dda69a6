// Checks the arguments of a Trainer, so that no mistake shows only after an epoch.
#pragma once

#include <vector>

#include "framework/ir/program.h"
#include "framework/tensor/scope.h"
#include "framework/training/metric.h"
#include "framework/training/reader.h"
#include "framework/training/trainer_options.h"
#include "framework/training/training_program.h"

namespace skiff::training {

// Returns the options. Throws an Error (kInvalidArgument) for a number out of range, for a reader
// or a callback that is nullptr, for a tuner if a reader doesn't know the shapes of its batches,
// for a training reader that other ranks share than the ranks of the options, and for such a
// validation reader, unless no ranks share it.
TrainerOptions CheckedOptions(TrainerOptions options, const Reader* train,
                              const Reader* validation);

// Finds mistakes that would show only when the first epoch has been trained: in its evaluation, or
// when the model is saved. `metrics`: the loss and the program's metrics. `saved_model`: the
// program of the inference model that the training saves. `scope`: as the startup program leaves
// it. Throws an Error:
// - kInvalidArgument if the test program or program.model declares a parameter in another dtype
//   than the main program does; program.model may declare float32 where the main program has
//   master weights,
// - kNotFound if a program lacks the variable or the weight of a metric, if the test program lacks
//   a streamed variable, or if the main program lacks the learning rate,
// - kInvalidArgument if the variable or the weight of a metric, or the learning rate, isn't one
//   float32, float64, int32 or int64 number,
// - kFailedPrecondition if the test program or the saved model keeps a variable to which neither
//   the startup program nor a training step gives a value,
// - and what MakeInferenceProgram throws.
void CheckPrograms(const TrainingProgram& program, const std::vector<Metric>& metrics,
                   const Program& saved_model, const Scope& scope);

}  // namespace skiff::training
