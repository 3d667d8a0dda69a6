#include "models/common/training_log.h"

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/base/error.h"
#include "framework/io/file.h"

namespace skiff::models {
namespace {

constexpr std::pair<const char*, double TrainingRecord::*> kNumbers[] = {
    {"seconds", &TrainingRecord::seconds},
    {"learning_rate", &TrainingRecord::learning_rate},
    {"samples_per_second", &TrainingRecord::samples_per_second},
    {"train_loss", &TrainingRecord::train_loss},
    {"train_accuracy", &TrainingRecord::train_accuracy},
    {"validation_loss", &TrainingRecord::validation_loss},
    {"validation_accuracy", &TrainingRecord::validation_accuracy},
};

std::vector<TrainingRecord> ReadRecords(const std::string& path, int64_t until_epoch) {
  std::vector<TrainingRecord> records;
  const std::string text = ReadFile(path);
  size_t begin = 0;
  for (int64_t number = 1; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;  // incomplete
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    try {
      const TrainingRecord record = ParseTrainingRecord(line);
      if (record.epoch <= until_epoch) records.push_back(record);
    } catch (const Error& error) {
      throw error.WithContext(StrCat(path, ", line ", number));
    }
  }
  return records;
}

}  // namespace

std::string PrintTrainingRecord(const TrainingRecord& record) {
  nlohmann::ordered_json json;
  json["epoch"] = record.epoch;
  json["step"] = record.step;
  for (const auto& [name, member] : kNumbers) json[name] = record.*member;
  return json.dump();
}

TrainingRecord ParseTrainingRecord(std::string_view line) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  SKIFF_ENFORCE(json.is_object(), kDataLoss, "no training record: ", line.substr(0, 80));
  TrainingRecord record;
  const auto integer = [&](const char* name) {
    const auto found = json.find(name);
    SKIFF_ENFORCE(found != json.end() && found->is_number_integer(), kDataLoss,
                  "a training record without an integer \"", name, "\"");
    return found->get<int64_t>();
  };
  record.epoch = integer("epoch");
  record.step = integer("step");
  for (const auto& [name, member] : kNumbers) {
    const auto found = json.find(name);
    SKIFF_ENFORCE(found != json.end() && (found->is_number() || found->is_null()), kDataLoss,
                  "a training record without a number \"", name, "\"");
    record.*member =
        found->is_null() ? std::numeric_limits<double>::quiet_NaN() : found->get<double>();
  }
  return record;
}

TrainingLog::TrainingLog(std::string path, int64_t keep_epochs) : path_(std::move(path)) {
  if (keep_epochs > 0 && std::filesystem::exists(path_)) {
    records_ = ReadRecords(path_, keep_epochs);
  }
  std::string text;
  for (const TrainingRecord& record : records_) text += PrintTrainingRecord(record) + "\n";
  AtomicWriteFile(path_, text);
}

void TrainingLog::Append(const TrainingRecord& record) {
  records_.push_back(record);
  std::ofstream file(path_, std::ios::app | std::ios::binary);
  file << PrintTrainingRecord(record) << "\n";
  file.flush();
  if (!file) ThrowSystemError("append to", path_, errno);
}

}  // namespace skiff::models
