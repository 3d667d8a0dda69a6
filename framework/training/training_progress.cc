#include "framework/training/training_progress.h"

#include <cmath>
#include <string>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/training/state_text.h"

namespace skiff::training {
namespace {

constexpr const char* kReaderPrefix = "reader.";

std::string SumName(const Metric& metric) { return metric.name + ".sum"; }
std::string WeightName(const Metric& metric) { return metric.name + ".weight"; }

}  // namespace

bool TrainingProgress::TakeIfBest(const Metric& decisive, int64_t of_epoch, double value) {
  // Strictly better: of equal epochs the first one stays.
  const bool is_better = decisive.larger_is_better ? value > best_value : value < best_value;
  // A comparison with NaN is always false, so without this a NaN would stay the best value for
  // ever.
  const bool is_first = best_epoch == 0 || std::isnan(best_value);
  if (!is_first && !is_better) return false;
  best_value = value;
  best_epoch = of_epoch;
  return true;
}

void TrainingProgress::EndEpoch(int64_t taken) {
  ++epoch;
  batch = taken;
  // Empty means the start of the next epoch, whatever the reader's state looks like.
  if (taken == 0) reader.clear();
  sums.assign(sums.size(), {});
  epoch_seconds = 0;
  samples = 0;
}

void AddProgress(const TrainingProgress& progress, const std::vector<Metric>& metrics,
                 TrainerState* state) {
  (*state)["epoch"] = std::to_string(progress.epoch);
  (*state)["batch"] = std::to_string(progress.batch);
  (*state)["seconds"] = FormatShortest(progress.seconds);
  (*state)["samples"] = std::to_string(progress.samples);
  (*state)["epoch_seconds"] = FormatShortest(progress.epoch_seconds);
  (*state)["learning_rate"] = FormatShortest(progress.learning_rate);
  (*state)["best_value"] = FormatShortest(progress.best_value);
  (*state)["best_epoch"] = std::to_string(progress.best_epoch);
  for (size_t i = 0; i < metrics.size(); ++i) {
    (*state)[SumName(metrics[i])] = FormatShortest(progress.sums[i].sum);
    (*state)[WeightName(metrics[i])] = FormatShortest(progress.sums[i].weight);
  }
  for (const auto& [name, value] : progress.reader) (*state)[kReaderPrefix + name] = value;
}

TrainingProgress ProgressIn(const TrainerState& state, const std::vector<Metric>& metrics) {
  TrainingProgress restored;
  restored.epoch = IntegerOf(state, "epoch");
  restored.batch = IntegerOf(state, "batch");
  SKIFF_ENFORCE(restored.epoch >= 0 && restored.batch >= 0, kDataLoss,
                "the checkpoint's state is in epoch ", restored.epoch, ", batch ", restored.batch,
                ": expected no negative numbers");
  restored.seconds = NumberOf(state, "seconds");
  for (const Metric& metric : metrics) {
    restored.sums.push_back(
        {.sum = NumberOf(state, SumName(metric)), .weight = NumberOf(state, WeightName(metric))});
  }
  restored.samples = IntegerOf(state, "samples");
  restored.epoch_seconds = NumberOf(state, "epoch_seconds");
  restored.learning_rate = NumberOf(state, "learning_rate");
  restored.best_value = NumberOf(state, "best_value");
  restored.best_epoch = IntegerOf(state, "best_epoch");
  restored.reader = PartOf(state, kReaderPrefix);
  SKIFF_ENFORCE(restored.batch == 0 || !restored.reader.empty(), kDataLoss,
                "the checkpoint's state is in batch ", restored.batch,
                " of an epoch, but holds no state of the reader");
  return restored;
}

}  // namespace skiff::training
