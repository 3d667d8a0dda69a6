// What must be equal on all ranks when a training begins.
#pragma once

#include "framework/tensor/scope.h"
#include "framework/training/rank_agreement.h"
#include "framework/training/reader.h"
#include "framework/training/trainer_options.h"
#include "framework/training/training_program.h"
#include "framework/training/training_progress.h"

namespace skiff::training {

// Returns the fixed settings, contents of files included; the other options that decide when ranks
// save, stop and sum, and which plans they make; how many ranks share the validation; what the bits
// of results depend on (threads, instruction set); the programs; the progress, and the hash of all
// variables in the scope that the program keeps.
RankFacts FactsOf(const TrainingProgram& program, const Reader& validation,
                  const TrainerOptions& options, const TrainingProgress& progress,
                  const Scope& scope);

}  // namespace skiff::training
