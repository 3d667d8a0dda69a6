// Checkpoints of a training: all persistables of a program (parameters, optimizer states, step
// counters) and the trainer's own state.
//
// A checkpoint is a folder in the checkpoint directory:
//
//   save-000007-step-12000/
//     tensors        the tensor streams of the persistables, in ascending order of their names
//     state.json     the trainer's state
//     manifest.json  written last: step, names, and size and CRC-32 of the two files
//
// The first number counts the saves, so the checkpoint saved last is the newest even if the
// training went back to an earlier step. A save writes a folder whose name starts with
// `.tmp-save-`, syncs the folder, and renames it when complete. The next save, or FinishLastSave,
// removes such folders of interrupted saves. Only one process at a time may write to a checkpoint
// directory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/io/trainer_state.h"
#include "framework/ir/api/program.h"
#include "framework/tensor/api/tensor.h"
#include "framework/tensor/scope.h"

namespace skiff {

struct SaveCheckpointOptions {
  // The number of complete checkpoints to keep, the new one included; at least 1.
  int keep_last = 2;
  // Whether to read the kept checkpoints and compare their CRC-32 before deleting an older one. If
  // false, only their sizes are compared.
  bool verify_kept = true;
};

struct SavedCheckpoint {
  std::string path = {};  // empty if none was saved
  // The older folders that were deleted, and messages about folders that couldn't be.
  std::vector<std::string> removed = {};
  std::vector<std::string> not_removed = {};
};

// Saves the persistables of `program` at `step`. Once the new checkpoint is complete and on disk,
// deletes all but the newest `keep_last` complete ones. Throws Error, leaving older checkpoints
// untouched and nothing half-written,
// - (kNotFound) for a persistable that the scope doesn't hold,
// - (kFailedPrecondition) for a persistable that holds a replaced value (ReplacedValues),
// - (kResourceExhausted) if the disk is full,
// - (kIo) if the directory can't be written,
// - (kAlreadyExists) if another process is saving the same checkpoint,
// - (kOutOfRange) for names of more than 64 MiB in all, which no reader would take,
// - (kInvalidArgument) for a negative step or keep_last < 1.
SavedCheckpoint SaveCheckpoint(const std::string& directory, const Program& program,
                               const Scope& scope, int64_t step, const TrainerState& state,
                               const SaveCheckpointOptions& options = {});

// Finishes a save that was interrupted after its checkpoint was complete: removes checkpoints
// beyond the newest `keep_last` complete ones, and temporary folders. Does nothing if the directory
// doesn't exist. Throws Error (kIo) if the directory can't be read or a temporary folder can't be
// removed, and (kInvalidArgument) for keep_last < 1.
SavedCheckpoint FinishLastSave(const std::string& directory,
                               const SaveCheckpointOptions& options = {});

// Returns whether the directory exists and holds a checkpoint, complete or not.
bool HasCheckpoint(const std::string& directory);

struct RefusedCheckpoint {
  std::string path = {};
  std::string reason = {};
};

struct LoadedCheckpoint {
  std::string path = {};
  int64_t step = 0;
  TrainerState state = {};
  // Newer checkpoints that are incomplete or corrupt, newest first.
  std::vector<RefusedCheckpoint> refused = {};
};

struct LoadCheckpointOptions {
  // Whether the checkpoint may hold variables that aren't persistables of the program.
  bool ignore_extra_variables = false;
  // Whether the checkpoint or the program may lack a variable of that name. A variable that the
  // checkpoint lacks keeps its value. May be empty: no variable is optional.
  std::function<bool(const std::string&)> is_optional = {};
  // Called with the trainer's state before anything is loaded. If it throws, the scope stays as it
  // was. May be empty.
  std::function<void(const TrainerState&)> check_state = {};
  // The same for each variable of the checkpoint, on the CPU, after check_state.
  std::function<void(const std::string&, const Tensor&)> check_variable = {};
};

// Loads the newest checkpoint whose files all exist and have the sizes and CRC-32 in its manifest.
// Changes the scope only after reading all of it. Another process may save at the same time: if it
// deletes a checkpoint that is being read, a newer one exists. Throws Error
// - (kNotFound) if the directory doesn't exist or holds no checkpoint,
// - (kDataLoss) if it holds checkpoints and all were refused, with the reasons,
// - (kInvalidArgument) if the checkpoint doesn't fit the program: a persistable is missing or
// extra,
//   and not optional, or of another dtype or shape,
// - and what check_state and check_variable throw, after the path.
LoadedCheckpoint LoadLatestCheckpoint(const std::string& directory, const Program& program,
                                      Scope* scope, const LoadCheckpointOptions& options = {});

// Sets all variables of the newest checkpoint in the scope, whatever program they are of. Throws
// Error as LoadLatestCheckpoint; the scope is then as it was.
LoadedCheckpoint LoadVariablesOfLatestCheckpoint(const std::string& directory, Scope* scope);

}  // namespace skiff
