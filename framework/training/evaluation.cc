#include "framework/training/evaluation.h"

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/comm/gather.h"

namespace skiff::training {
namespace {

using Values = std::vector<WeightedValue>;  // of a batch

// Returns the numbers of each rank, of which there may be any number.
std::vector<std::vector<double>> GatherLists(Communicator* ranks, const std::vector<double>& own) {
  const auto* bytes = reinterpret_cast<const char*>(own.data());
  std::vector<std::vector<double>> lists;
  for (const std::string& text : GatherTexts(ranks, {bytes, own.size() * sizeof(double)})) {
    std::vector<double> list(text.size() / sizeof(double));
    if (!list.empty()) std::memcpy(list.data(), text.data(), text.size());
    lists.push_back(std::move(list));
  }
  return lists;
}

// Returns the values of the batches of all ranks, in the order in which one process reads these.
std::vector<Values> BatchesOfAll(Communicator* ranks, const std::vector<Values>& own,
                                 size_t metric_count) {
  std::vector<double> numbers;
  for (const Values& batch : own) {
    for (const WeightedValue& one : batch) numbers.insert(numbers.end(), {one.value, one.weight});
  }
  const std::vector<std::vector<double>> lists = GatherLists(ranks, numbers);
  const size_t length = 2 * metric_count;
  std::vector<Values> all;
  // Rank 0 has as many batches as any rank.
  for (size_t begin = 0; begin < lists[0].size(); begin += length) {
    for (const std::vector<double>& list : lists) {
      if (begin >= list.size()) break;
      Values& batch = all.emplace_back();
      for (size_t i = begin; i < begin + length; i += 2) batch.push_back({list[i], list[i + 1]});
    }
  }
  return all;
}

void MergeStreams(Communicator* ranks, const TrainingMetrics& metrics) {
  for (const Metric& metric : metrics.all()) {
    if (metric.streaming == nullptr) continue;
    const std::vector<std::vector<double>> states =
        GatherLists(ranks, metric.streaming->State().value());
    metric.streaming->Reset();
    for (const std::vector<double>& state : states) metric.streaming->Merge(state);
  }
}

// Runs the program on all batches of the reader. Returns the values of each batch.
std::vector<Values> RunBatches(const TrainingMetrics& metrics, Reader* reader,
                               BoundFeeds* program) {
  // Always epoch 0: each evaluation sees the same samples in the same order, so its sums round in
  // the same way.
  reader->StartEpoch(0);
  for (const Metric& metric : metrics.all()) {
    if (metric.streaming != nullptr) metric.streaming->Reset();
  }
  std::vector<Values> batches;
  for (Batch batch; reader->Next(&batch);) {
    const BoundProgram& step = program->Step(batch.feeds);
    batches.push_back(metrics.Measure(step, batch.samples));
    metrics.Stream(step);
  }
  return batches;
}

MetricValues Results(const TrainingMetrics& metrics, const std::vector<Values>& batches) {
  std::vector<WeightedSum> sums(metrics.all().size());
  for (const Values& batch : batches) metrics.Add(batch, &sums);
  const MetricValues means = metrics.Means(sums);
  MetricValues results;
  for (const Metric& metric : metrics.all()) {
    if (metric.streaming != nullptr) results.Add(metric.name, metric.streaming->Value());
    if (means.contains(metric.name)) results.Add(metric.name, means.at(metric.name));
  }
  return results;
}

// Other processors may round otherwise, but all ranks must decide alike.
MetricValues OfRank0(Communicator* ranks, const MetricValues& own) {
  std::vector<double> numbers;
  for (const auto& [name, value] : own.entries()) numbers.push_back(value);
  const std::vector<double> all = GatherNumbers<double>(ranks, std::span<const double>(numbers));
  MetricValues first;
  for (size_t i = 0; i < numbers.size(); ++i) first.Add(own.entries()[i].first, all[i]);
  return first;
}

}  // namespace

MetricValues Evaluate(const TrainingMetrics& metrics, Reader* reader, BoundFeeds* program,
                      Communicator* ranks) {
  CheckMergeable(metrics, *reader);
  std::vector<Values> batches = RunBatches(metrics, reader, program);
  if (ranks == nullptr) return Results(metrics, batches);
  if (reader->ranks() == 1) return OfRank0(ranks, Results(metrics, batches));
  batches = BatchesOfAll(ranks, batches, metrics.all().size());
  MergeStreams(ranks, metrics);
  return Results(metrics, batches);
}

void CheckMergeable(const TrainingMetrics& metrics, const Reader& reader) {
  for (const Metric& metric : metrics.all()) {
    SKIFF_ENFORCE(
        reader.ranks() == 1 || metric.streaming == nullptr || metric.streaming->State(),
        kInvalidArgument, "the metric \"", metric.name, "\" has no State that ", reader.ranks(),
        " ranks could merge: expected a validation reader that gives all ", "batches to each rank");
  }
}

}  // namespace skiff::training
