// The settings of a training that must not change between the training and its continuation: the
// options `configuration`, `earlier_configuration` and `file_settings` of TrainerOptions. The state
// of each checkpoint holds them.
#pragma once

#include <map>
#include <ostream>
#include <string>

#include "framework/io/trainer_state.h"
#include "framework/training/program_precision.h"
#include "framework/training/trainer_options.h"

namespace skiff::training {

// Adds the precision's settings to the configuration, where the configuration lacks them. The
// settings of a checkpoint without them are float32's.
void AddPrecision(const ProgramPrecision& precision, TrainerOptions* options);

// Returns the settings by name, those of contents of files after the setting that names the files.
std::map<std::string, std::string> FixedSettings(const TrainerOptions& options);

// Adds the settings to the state of a checkpoint.
void AddSettings(const TrainerOptions& options, TrainerState* state);

// Throws an Error (kInvalidArgument) that names the first difference between the settings in the
// options and in the state. A setting of `earlier_configuration` that the state lacks has the value
// of `earlier_configuration`. In a state of an earlier version, which lacks the contents of files,
// the names of files must be the same.
void CheckSettings(const TrainerOptions& options, const TrainerState& state);

// Writes a warning for each setting that names files whose contents the state lacks, so that
// CheckSettings couldn't compare the contents.
void WarnOfUnknownContents(const TrainerOptions& options, const TrainerState& state,
                           std::ostream* out);

}  // namespace skiff::training
