// Checkpoints of a training: all persistables of a program (parameters, optimizer states, step
// counters) and the trainer's own state.
//
// A checkpoint is a folder of the checkpoint directory:
//
//   save-000007-step-12000/
//     tensors        the tensor streams of the persistables, in ascending order of their names
//     state.json     the trainer's state
//     manifest.json  written last: step, names, and size and CRC-32 of the two files
//
// The first number counts the saves, so that the newest is the one written last, even if the
// training went back to an earlier step. A folder is written under a name that starts with
// `.tmp-save-`, synced, and renamed once it is complete; what an interrupted save left under such a
// name is removed by the next one. One process at a time writes to a checkpoint directory.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/tensor/scope.h"

namespace skiff {

// What a trainer wants back besides the variables (epoch, position of the reader, random state):
// any names, any bytes.
using TrainerState = std::map<std::string, std::string>;

struct SaveCheckpointOptions {
  // How many complete checkpoints to keep, the new one included; at least 1.
  int keep_last = 2;
  // Whether to read those that are kept and compare their CRC-32 before an older one is deleted.
  // false: only their sizes are looked at.
  bool verify_kept = true;
};

struct SavedCheckpoint {
  std::string path;
  // Older folders that were deleted, and messages about those that couldn't be.
  std::vector<std::string> removed;
  std::vector<std::string> not_removed;
};

// Saves the persistables of `program` at `step`. Nothing older is deleted before the new checkpoint
// is complete and on the disk; then, counted from the newest, everything beyond `keep_last`
// complete ones is. Error, leaving older checkpoints untouched and nothing half-written behind:
// kNotFound for a persistable that the scope doesn't hold, kFailedPrecondition for one that
// holds a replaced value (ReplacedValues), kResourceExhausted for a full disk, kIo
// for a directory that can't be written, kInvalidArgument for a negative step or keep_last < 1.
SavedCheckpoint SaveCheckpoint(const std::string& directory, const Program& program,
                               const Scope& scope, int64_t step, const TrainerState& state,
                               const SaveCheckpointOptions& options = {});

// Whether the directory is there and holds a checkpoint, complete or not.
bool HasCheckpoint(const std::string& directory);

struct RefusedCheckpoint {
  std::string path;
  std::string reason;
};

struct LoadedCheckpoint {
  std::string path;
  int64_t step = 0;
  TrainerState state;
  // Newer ones that were incomplete or corrupt, newest first.
  std::vector<RefusedCheckpoint> refused;
};

struct LoadCheckpointOptions {
  // Whether the checkpoint may hold variables that aren't persistables of the program.
  bool ignore_extra_variables = false;
  // Called with the trainer's state before anything is loaded: an Error that it throws leaves the
  // scope as it was. May be empty.
  std::function<void(const TrainerState&)> check_state = {};
};

// Loads the newest checkpoint whose files are all there and have the sizes and CRC-32 of its
// manifest; the scope is touched only once all of it was read. Another process may save meanwhile:
// what it deletes while it is being read is no loss, for there is a newer one then. Error:
// kNotFound if the directory holds no checkpoint (or isn't there), kDataLoss if it holds some and
// all were refused (the message says why), kInvalidArgument if the checkpoint doesn't fit the
// program: a persistable is missing, extra, or of another dtype or shape; what check_state throws,
// with the path in front.
LoadedCheckpoint LoadLatestCheckpoint(const std::string& directory, const Program& program,
                                      Scope* scope, const LoadCheckpointOptions& options = {});

}  // namespace skiff
