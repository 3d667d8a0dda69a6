#include "framework/training/training_directory.h"

#include <filesystem>
#include <system_error>

#include "framework/base/error.h"
#include "framework/io/checkpoint.h"
#include "framework/io/file.h"
#include "framework/io/system_error.h"

namespace skiff::training {
namespace {

// Returns false for an empty file or directory, too.
bool HoldsSomething(const std::string& path) {
  if (!PathExists(path)) return false;
  std::error_code error;
  const bool is_empty = std::filesystem::is_empty(path, error);
  if (error) ThrowSystemError("look into", path, error.value());
  return !is_empty;
}

}  // namespace

std::string TrainingDirectory::checkpoints() const { return JoinPath(path_, "checkpoints"); }

std::string TrainingDirectory::model() const { return JoinPath(path_, "model"); }

std::string TrainingDirectory::unaveraged_model() const {
  return JoinPath(path_, "unaveraged_model");
}

std::string TrainingDirectory::log() const { return JoinPath(path_, "training_log.jsonl"); }

std::string TrainingDirectory::curve() const { return JoinPath(path_, "learning_curve.svg"); }

std::string TrainingDirectory::precision() const { return JoinPath(path_, "precision.txt"); }

// Two trainings in one directory would delete each other's checkpoints, each taking them for older
// ones of its own.
std::unique_ptr<FileLock> TrainingDirectory::Lock() const {
  auto lock = std::make_unique<FileLock>(JoinPath(path_, ".lock"));
  SKIFF_ENFORCE(lock->is_held(), kFailedPrecondition, "another training is writing in ", path_,
                ": wait for its end, or choose another output directory");
  return lock;
}

// Else the next file would make the directory anew, without its lock and without what it held.
void TrainingDirectory::CheckInPlace(const FileLock& lock) const {
  SKIFF_ENFORCE(
      lock.is_in_place(), kDataLoss, path_,
      " was removed, renamed or replaced since the training has taken it, which writes no further: "
      "give it back its name and resume, or begin anew in another output directory");
}

void TrainingDirectory::CheckUnused() const {
  SKIFF_ENFORCE(!HasCheckpoint(checkpoints()), kFailedPrecondition, path_,
                " holds a training: resume it, or choose another output directory");
  for (const std::string& path : {model(), log()}) {
    SKIFF_ENFORCE(!HoldsSomething(path), kFailedPrecondition, path,
                  " is of a training without a checkpoint to resume from: remove it, or choose "
                  "another output directory");
  }
}

void TrainingDirectory::RemoveTempFiles() const {
  for (const std::string& directory : {path_, model(), unaveraged_model()}) {
    skiff::RemoveTempFiles(directory);
  }
}

void TrainingDirectory::CheckWritten(const std::vector<std::string>& model_files,
                                     bool is_averaged) const {
  std::vector<std::string> paths = {log(), curve()};
  std::vector<std::string> models = {model()};
  if (is_averaged) models.push_back(unaveraged_model());
  for (const std::string& directory : models) {
    for (const std::string& name : model_files) paths.push_back(JoinPath(directory, name));
  }
  constexpr const char* kRemoved =
      " was written by the training, but isn't there any more: somebody removed it";
  for (const std::string& path : paths) {
    SKIFF_ENFORCE(PathExists(path), kDataLoss, path, kRemoved);
  }
  SKIFF_ENFORCE(HasCheckpoint(checkpoints()), kDataLoss, "a checkpoint in ", checkpoints(),
                kRemoved);
}

}  // namespace skiff::training
