#include "operators/sequence/kernels/crf_chain.h"

#include <algorithm>

namespace skiff {
namespace {

// A sum of products below it may have lost terms to underflow. A larger one has lost at most
// 1e-308 for each tag.
constexpr double kLeastSum = 1e-280;

}  // namespace

void CrfTransitions::MakeFactors() {
  for (int64_t to = 0; to < tags_; ++to) {
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t from = 0; from < tags_; ++from) largest = std::max(largest, Step(from, to));
    base()[to] = std::isfinite(largest) ? largest : 0;
  }
  for (int64_t from = 0; from < tags_; ++from) {
    for (int64_t to = 0; to < tags_; ++to) {
      factors()[from * tags_ + to] = std::exp(Step(from, to) - base()[to]);
    }
  }
}

void CrfTransitions::SumSteps(const double* before, const Sums& to) const {
  std::fill_n(to.sums, tags_, 0.0);
  for (int64_t from = 0; from < tags_; ++from) {
    const double power = std::exp(before[from]);
    to.powers[from] = power;
    const double* row = factors() + from * tags_;
    for (int64_t i = 0; i < tags_; ++i) to.sums[i] += power * row[i];
  }
  for (int64_t i = 0; i < tags_; ++i) {
    to.logs[i] = to.sums[i] >= kLeastSum
                     ? base()[i] + std::log(to.sums[i])
                     : LogSumExp(tags_, [&](int64_t from) { return before[from] + Step(from, i); });
  }
}

void CrfTransitions::SpreadBack(const double* before, const Sums& sums, double scale, double* later,
                                double* earlier, double* steps) const {
  std::fill_n(earlier, tags_, 0.0);
  // The probability of a step, given where it ends: powers * factor / sum.
  for (int64_t to = 0; to < tags_; ++to) {
    if (sums.sums[to] >= kLeastSum || later[to] == 0) {
      later[to] = later[to] == 0 ? 0 : later[to] / sums.sums[to];
      continue;
    }
    for (int64_t from = 0; from < tags_; ++from) {
      const double share = later[to] * std::exp(before[from] + Step(from, to) - sums.logs[to]);
      earlier[from] += share;
      steps[from * tags_ + to] += scale * share;
    }
    later[to] = 0;
  }
  for (int64_t from = 0; from < tags_; ++from) {
    const double* row = factors() + from * tags_;
    double sum = 0;
    for (int64_t to = 0; to < tags_; ++to) {
      const double share = sums.powers[from] * row[to] * later[to];
      sum += share;
      steps[from * tags_ + to] += scale * share;
    }
    earlier[from] += sum;
  }
}

}  // namespace skiff
