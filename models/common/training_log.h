// What happened in a training, as JSON lines: one object an epoch.
//
//   {"epoch":1,"step":32,"seconds":4.1,"learning_rate":0.1,"train_loss":1.9,…}
//
// Where parameters are averaged, averaged_validation_loss and averaged_validation_accuracy as well.
//
// Each record is on the disk when Append returns. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skiff::models {

struct TrainingRecord {
  int64_t epoch = 0;   // epochs finished
  int64_t step = 0;    // steps finished
  double seconds = 0;  // since the training began, breaks left out
  double learning_rate = 0;
  double samples_per_second = 0;
  double train_loss = 0;
  double train_accuracy = 0;
  double validation_loss = 0;
  double validation_accuracy = 0;
  // With averaged parameters; none if there are none.
  std::optional<double> averaged_validation_loss = {};
  std::optional<double> averaged_validation_accuracy = {};
  friend bool operator==(const TrainingRecord&, const TrainingRecord&) = default;
};

// One line without its end. Numbers that JSON can't hold (NaN, infinity) become null.
std::string PrintTrainingRecord(const TrainingRecord& record);
// The inverse; null gives NaN. Error (kDataLoss) for anything else.
TrainingRecord ParseTrainingRecord(std::string_view line);

class TrainingLog {
 public:
  // Keeps of an existing file the first `keep_epochs` epochs, those a resumed training has behind
  // it; 0: starts anew. Lines that are no records are dropped. Error as AtomicFile.
  TrainingLog(std::string path, int64_t keep_epochs);

  // Writes the file anew: a crash leaves no half line. Error as AtomicFile, the file as it was.
  void Append(const TrainingRecord& record);
  const std::vector<TrainingRecord>& records() const { return records_; }
  // Which lines were dropped and why, and which of the epochs to keep there weren't.
  const std::vector<std::string>& warnings() const { return warnings_; }
  const std::string& path() const { return path_; }

 private:
  void Read(int64_t keep_epochs);
  void Write() const;

  std::string path_;
  std::vector<TrainingRecord> records_;
  std::vector<std::string> warnings_;
};

}  // namespace skiff::models
