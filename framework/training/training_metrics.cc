#include "framework/training/training_metrics.h"

#include <algorithm>

#include "framework/base/error.h"
#include "framework/base/str_cat.h"

namespace skiff::training {
namespace {

// Metrics may be counts, so integers are accepted; float64 holds them exactly up to 2^53.
double NumberIn(const Tensor& value, const std::string& name) {
  switch (value.dtype()) {
    case DType::kFloat32:
      return value.Item<float>();
    case DType::kFloat64:
      return value.Item<double>();
    case DType::kInt32:
      return value.Item<int32_t>();
    case DType::kInt64:
      return static_cast<double>(value.Item<int64_t>());
    default:
      Throw(ErrorCode::kInvalidArgument, "the metric \"", name, "\" is of ",
            DTypeName(value.dtype()), ": expected float32, float64, int32 or int64");
  }
}

// Throws an Error unless the metric is either a streaming one or one with a variable.
void CheckKind(const Metric& metric) {
  if (metric.streaming != nullptr) {
    SKIFF_ENFORCE(metric.variable.empty() && metric.weight.empty() && !metric.streamed.empty(),
                  kInvalidArgument, "the metric \"", metric.name,
                  "\" is a streaming one: expected variables to stream, and neither a variable "
                  "nor a weight");
  } else {
    SKIFF_ENFORCE(metric.streamed.empty(), kInvalidArgument, "the metric \"", metric.name,
                  "\" streams ", Join(metric.streamed, ", "),
                  ", but `streaming` is nullptr: expected what is made of them");
  }
}

// Returns the place of a variable among the fetches, where it is added if it isn't there: two
// metrics may share a variable, a weight for example, which is then fetched once.
size_t PlaceIn(FetchList* fetches, const std::string& variable) {
  const auto found = std::ranges::find(*fetches, variable);
  const auto place = static_cast<size_t>(found - fetches->begin());
  if (found == fetches->end()) fetches->push_back(variable);
  return place;
}

}  // namespace

TrainingMetrics::TrainingMetrics(const TrainingProgram& program) {
  metrics_ = {{.name = "loss", .variable = program.loss, .weight = program.loss_weight}};
  metrics_.insert(metrics_.end(), program.metrics.begin(), program.metrics.end());
  std::vector<std::string> names;
  for (const Metric& metric : metrics_) {
    SKIFF_ENFORCE(std::ranges::count(names, metric.name) == 0, kInvalidArgument,
                  "there are two metrics \"", metric.name, "\"");
    names.push_back(metric.name);
    CheckKind(metric);
  }
  decisive_ =
      static_cast<size_t>(std::ranges::find(names, program.decisive_metric) - names.begin());
  SKIFF_ENFORCE(decisive_ < names.size(), kInvalidArgument, "the decisive metric \"",
                program.decisive_metric, "\" is none of ", Join(names, ", "));
  FindPlaces(program.learning_rate);
}

void TrainingMetrics::FindPlaces(const std::string& learning_rate) {
  FetchList fetches;
  for (const Metric& metric : metrics_) {
    Places& places = places_.emplace_back();
    if (metric.streaming != nullptr) continue;
    places.value = PlaceIn(&fetches, metric.variable);
    if (!metric.weight.empty()) places.weight = PlaceIn(&fetches, metric.weight);
  }
  training_fetches_ = fetches;
  training_fetches_.push_back(learning_rate);
  evaluation_fetches_ = fetches;
  for (size_t i = 0; i < metrics_.size(); ++i) {
    for (const std::string& variable : metrics_[i].streamed) {
      places_[i].streamed.push_back(PlaceIn(&evaluation_fetches_, variable));
    }
  }
}

std::vector<WeightedValue> TrainingMetrics::Measure(const BoundProgram& step,
                                                    int64_t samples) const {
  std::vector<WeightedValue> values(metrics_.size());
  for (size_t i = 0; i < metrics_.size(); ++i) {
    if (metrics_[i].streaming != nullptr) continue;
    const Places& place = places_[i];
    values[i] = {.value = NumberIn(step.fetch(place.value), metrics_[i].name),
                 .weight = place.weight ? NumberIn(step.fetch(*place.weight), metrics_[i].name)
                                        : static_cast<double>(samples)};
  }
  return values;
}

MetricValues TrainingMetrics::Named(const std::vector<WeightedValue>& values) const {
  MetricValues named;
  for (size_t i = 0; i < metrics_.size(); ++i) {
    if (metrics_[i].streaming == nullptr) named.Add(metrics_[i].name, values[i].value);
  }
  return named;
}

void TrainingMetrics::Add(const std::vector<WeightedValue>& values,
                          std::vector<WeightedSum>* sums) const {
  for (size_t i = 0; i < metrics_.size(); ++i) {
    if (metrics_[i].streaming == nullptr) (*sums)[i].Add(values[i]);
  }
}

double TrainingMetrics::LearningRate(const BoundProgram& step) const {
  return NumberIn(step.fetch(training_fetches_.size() - 1), "learning_rate");
}

MetricValues TrainingMetrics::Means(const std::vector<WeightedSum>& sums) const {
  MetricValues means;
  for (size_t i = 0; i < metrics_.size(); ++i) {
    if (sums[i].weight != 0) means.Add(metrics_[i].name, sums[i].Mean());
  }
  return means;
}

std::string TrainingMetrics::Text(const MetricValues& values) const {
  std::string text;
  for (const Metric& metric : metrics_) {
    if (!values.contains(metric.name)) continue;
    text += StrCat(text.empty() ? "" : "  ", metric.name, " ",
                   MetricText(metric, values.at(metric.name)));
  }
  return text;
}

void TrainingMetrics::Stream(const BoundProgram& step) const {
  for (size_t i = 0; i < metrics_.size(); ++i) {
    if (metrics_[i].streaming == nullptr) continue;
    std::vector<Tensor> values;
    for (const size_t place : places_[i].streamed) values.push_back(step.fetch(place));
    try {
      metrics_[i].streaming->Add(values);
    } catch (const Error& error) {
      throw error.WithContext(StrCat("the metric \"", metrics_[i].name, "\""));
    }
  }
}

}  // namespace skiff::training
