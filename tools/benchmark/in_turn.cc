#include "tools/benchmark/in_turn.h"

#include <algorithm>
#include <cmath>

#include "framework/base/error.h"
#include "tools/benchmark/run_times.h"

namespace skiff {
namespace {

// Of what is timed at a time.
constexpr double kLeastSampleSeconds = 20e-6;
constexpr double kLongRunSeconds = 1e-3;

// The first run may be slow only because its data lies far away; of a long one that is a small
// part.
double WarmUp(const std::function<void()>& run) {
  const double seconds = SecondsOf(run);
  return seconds < kLongRunSeconds ? SecondsOf(run) : seconds;
}

double TimeTurn(const std::function<void()>& run, double least_seconds) {
  const double estimate = std::max(WarmUp(run), 1e-9);
  const int runs = std::max(1, static_cast<int>(std::ceil(kLeastSampleSeconds / estimate)));
  std::vector<double> seconds;
  double total = 0;
  do {
    const double sample = SecondsOf([&] {
      for (int i = 0; i < runs; ++i) run();
    });
    seconds.push_back(sample / runs);
    total += sample;
  } while (total < least_seconds);
  return PercentilesOf(std::move(seconds)).median;
}

}  // namespace

std::vector<TurnSeconds> TimeInTurn(const std::vector<std::function<void()>>& works,
                                    const InTurnOptions& options) {
  std::vector<TurnSeconds> times(works.size());
  for (int turn = 0; turn < options.turns; ++turn) {
    for (size_t i = 0; i < works.size(); ++i) {
      times[i].push_back(TimeTurn(works[i], options.seconds / options.turns));
    }
  }
  return times;
}

double MedianRatio(const TurnSeconds& longer, const TurnSeconds& shorter) {
  SKIFF_ENFORCE(longer.size() == shorter.size(), kInvalidArgument, longer.size(), " turns beside ",
                shorter.size());
  std::vector<double> ratios(longer.size());
  std::ranges::transform(longer, shorter, ratios.begin(), [](double a, double b) { return a / b; });
  return PercentilesOf(std::move(ratios)).median;
}

}  // namespace skiff
