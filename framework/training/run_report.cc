#include "framework/training/run_report.h"

#include <span>

#include "framework/comm/gather.h"

namespace skiff::training {
namespace {

constexpr size_t kHead = 2;  // numbers before the values

std::vector<double> Numbers(const RunReport& report) {
  std::vector<double> numbers = {static_cast<double>(report.stop),
                                 static_cast<double>(report.samples)};
  for (const auto& [value, weight] : report.values) {
    numbers.insert(numbers.end(), {value, weight});
  }
  return numbers;
}

RunReport ReportOf(std::span<const double> numbers) {
  RunReport report = {.stop = static_cast<int32_t>(numbers[0]),
                      .samples = static_cast<int64_t>(numbers[1])};
  for (size_t i = kHead; i < numbers.size(); i += 2) {
    report.values.push_back({.value = numbers[i], .weight = numbers[i + 1]});
  }
  return report;
}

}  // namespace

std::vector<RunReport> GatherReports(Communicator* ranks, const RunReport& own) {
  if (ranks == nullptr) return {own};
  const std::vector<double> numbers = Numbers(own);
  const std::vector<double> all = GatherNumbers<double>(ranks, std::span<const double>(numbers));
  std::vector<RunReport> reports;
  for (size_t begin = 0; begin < all.size(); begin += numbers.size()) {
    reports.push_back(ReportOf(std::span(all).subspan(begin, numbers.size())));
  }
  return reports;
}

}  // namespace skiff::training
