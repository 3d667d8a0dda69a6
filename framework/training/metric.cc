#include "framework/training/metric.h"

#include <algorithm>

#include "framework/base/error.h"
#include "framework/base/number_text.h"

namespace skiff::training {
namespace {

auto Find(const std::vector<std::pair<std::string, double>>& entries, std::string_view name) {
  return std::ranges::find(entries, name,
                           [](const auto& entry) -> std::string_view { return entry.first; });
}

}  // namespace

void MetricValues::Add(std::string name, double value) {
  entries_.emplace_back(std::move(name), value);
}

double MetricValues::at(std::string_view name) const {
  const auto found = Find(entries_, name);
  if (found != entries_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& entry : entries_) names.push_back(entry.first);
  Throw(ErrorCode::kNotFound, "there is no metric \"", name, "\", only ", Join(names, ", "));
}

bool MetricValues::contains(std::string_view name) const {
  return Find(entries_, name) != entries_.end();
}

std::string MetricText(const Metric& metric, double value) {
  return metric.percent ? FormatFixed(100 * value, 2) + " %" : FormatFixed(value, 4);
}

}  // namespace skiff::training
