#include "framework/training/training_log.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "framework/io/file.h"

namespace skiff::training {
namespace {

constexpr std::pair<const char*, double TrainingRecord::*> kNumbers[] = {
    {"seconds", &TrainingRecord::seconds},
    {"learning_rate", &TrainingRecord::learning_rate},
    {"samples_per_second", &TrainingRecord::samples_per_second},
};

constexpr std::pair<std::string_view, MetricValues TrainingRecord::*> kMetrics[] = {
    {"train_", &TrainingRecord::train},
    {"validation_", &TrainingRecord::validation},
    {"averaged_validation_", &TrainingRecord::averaged},
};

}  // namespace

std::string PrintTrainingRecord(const TrainingRecord& record) {
  nlohmann::ordered_json json;
  json["epoch"] = record.epoch;
  json["step"] = record.step;
  for (const auto& [name, member] : kNumbers) json[name] = record.*member;
  for (const auto& [prefix, member] : kMetrics) {
    for (const auto& [name, value] : (record.*member).entries()) json[StrCat(prefix, name)] = value;
  }
  return json.dump();
}

TrainingRecord ParseTrainingRecord(std::string_view line) {
  // Ordered, since metrics must keep their order.
  const auto json = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
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
  const auto number = [&](const std::string& name) {
    const auto found = json.find(name);
    SKIFF_ENFORCE(found != json.end() && (found->is_number() || found->is_null()), kDataLoss,
                  "a training record without a number \"", name, "\"");
    // JSON has no NaN and no infinity; the writer made them null.
    return found->is_null() ? std::numeric_limits<double>::quiet_NaN() : found->get<double>();
  };
  for (const auto& [name, member] : kNumbers) record.*member = number(name);
  for (const auto& [key, value] : json.items()) {
    for (const auto& [prefix, member] : kMetrics) {
      if (key.starts_with(prefix)) (record.*member).Add(key.substr(prefix.size()), number(key));
    }
  }
  return record;
}

TrainingLog::TrainingLog(std::string path, int64_t keep_epochs) : path_(std::move(path)) {
  // Lines of later epochs are from a training that was cut off between its log and its checkpoint.
  // They will be written again.
  if (keep_epochs > 0) Read(keep_epochs);
  Write();
}

void TrainingLog::Append(const TrainingRecord& record) {
  records_.push_back(record);
  Write();
}

void TrainingLog::Read(int64_t keep_epochs) {
  std::istringstream lines(PathExists(path_) ? ReadFile(path_) : "");
  std::string line;
  for (int64_t number = 1; std::getline(lines, line); ++number) {
    try {
      const TrainingRecord record = ParseTrainingRecord(line);
      if (record.epoch <= keep_epochs) records_.push_back(record);
    } catch (const Error& error) {
      warnings_.push_back(StrCat(path_, ", line ", number, ": dropped, ", error.what()));
    }
  }
  int64_t last = 0;
  // Epochs count from 1. The last call, for the epoch after the kept ones, finds a gap at the end.
  const auto warn_of_gap_before = [&](int64_t epoch) {
    if (last + 1 < epoch) {
      const std::string until = last + 2 < epoch ? StrCat(" to ", epoch - 1) : "";
      warnings_.push_back(StrCat(path_, ": no line of epoch ", last + 1, until));
    }
    last = epoch;
  };
  for (const TrainingRecord& record : records_) warn_of_gap_before(record.epoch);
  warn_of_gap_before(keep_epochs + 1);
}

void TrainingLog::Write() const {
  std::string text;
  for (const TrainingRecord& record : records_) text += PrintTrainingRecord(record) + "\n";
  // The whole file for each epoch: appending could leave half a line, and a line takes some hundred
  // bytes.
  AtomicWriteFile(path_, text);
}

}  // namespace skiff::training
