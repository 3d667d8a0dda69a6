// The output directory of a training: the places of its files, the lock, and checks that no files
// of another training are overwritten and that no written file is lost.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/io/file_lock.h"

namespace skiff::training {

class TrainingDirectory {
 public:
  // Touches no file.
  explicit TrainingDirectory(std::string path) : path_(std::move(path)) {}

  // Each returns a path. trainer.h says what is there.
  std::string checkpoints() const;
  std::string model() const;
  std::string unaveraged_model() const;
  std::string log() const;
  std::string curve() const;
  std::string precision() const;  // for people: how a program was rewritten to half

  // Takes the lock that a training holds while it writes. The directory must exist. Throws an Error
  // (kFailedPrecondition) if another training holds the lock, and what FileLock throws.
  std::unique_ptr<FileLock> Lock() const;
  // Throws an Error (kDataLoss) unless the lock, of Lock(), is in place.
  void CheckInPlace(const FileLock& lock) const;
  // Throws an Error (kFailedPrecondition) if the directory holds checkpoints, a model or lines of a
  // log, which a new training would overwrite.
  void CheckUnused() const;
  // Removes what a kill may have left of files that were being written. The caller holds the lock,
  // so no other training is writing such files.
  void RemoveTempFiles() const;
  // Throws an Error (kDataLoss) for a file of a finished training that isn't there: log, curve,
  // a checkpoint, or one of `model_files` in model/ and, if the training averages parameters, in
  // unaveraged_model/.
  void CheckWritten(const std::vector<std::string>& model_files, bool is_averaged) const;

 private:
  std::string path_;
};

}  // namespace skiff::training
