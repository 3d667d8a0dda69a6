// A log of a training as JSON lines: one object per epoch.
//
//   {"epoch":1,"step":32,"seconds":4.1,"learning_rate":0.1,…,"train_loss":1.9,"validation_loss":2.0}
//
// A metric's values have the names train_<metric>, validation_<metric> and, if parameters are
// averaged, averaged_validation_<metric>.
//
// Each record is on the disk when Append returns. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/training/training_record.h"

namespace skiff::training {

// Returns one line without a line end. Numbers that JSON can't hold (NaN, infinity) become null.
std::string PrintTrainingRecord(const TrainingRecord& record);
// The inverse; null gives NaN. Throws an Error (kDataLoss) for anything else.
TrainingRecord ParseTrainingRecord(std::string_view line);

class TrainingLog {
 public:
  // Keeps the first `keep_epochs` epochs of an existing file (the epochs that a resumed training
  // has finished) and drops lines that are no records. 0: starts over. Errors as AtomicFile.
  TrainingLog(std::string path, int64_t keep_epochs);

  // Writes the whole file, so that a crash leaves no half line. Errors as AtomicFile; the file is
  // then as it was.
  void Append(const TrainingRecord& record);
  const std::vector<TrainingRecord>& records() const { return records_; }
  // Says which lines were dropped and why, and which of the epochs to keep are missing.
  const std::vector<std::string>& warnings() const { return warnings_; }
  const std::string& path() const { return path_; }

 private:
  void Read(int64_t keep_epochs);
  void Write() const;

  std::string path_;
  std::vector<TrainingRecord> records_;
  std::vector<std::string> warnings_;
};

}  // namespace skiff::training
