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

// Seconds of each run, or of a few runs on average.
std::vector<double> TimeTurn(const std::function<void()>& run, double least_seconds) {
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
  return seconds;
}

void AddTurn(const std::vector<double>& seconds, TurnTimes* times) {
  const double fastest = std::ranges::min(seconds);
  times->fastest = times->medians.empty() ? fastest : std::min(times->fastest, fastest);
  times->medians.push_back(PercentilesOf(seconds).median);
}

}  // namespace

std::vector<TurnTimes> TimeInTurn(const std::vector<std::function<void()>>& works,
                                  const InTurnOptions& options) {
  SKIFF_ENFORCE(options.turns > 0, kInvalidArgument, options.turns, " turns, expected at least 1");
  std::vector<TurnTimes> times(works.size());
  for (int turn = 0; turn < options.turns; ++turn) {
    for (size_t i = 0; i < works.size(); ++i) {
      AddTurn(TimeTurn(works[i], options.seconds / options.turns), &times[i]);
    }
  }
  return times;
}

double MedianOf(const TurnTimes& times) { return PercentilesOf(times.medians).median; }

double MedianRatio(const TurnTimes& longer, const TurnTimes& shorter) {
  SKIFF_ENFORCE(longer.medians.size() == shorter.medians.size(), kInvalidArgument,
                longer.medians.size(), " turns beside ", shorter.medians.size());
  std::vector<double> ratios(longer.medians.size());
  std::ranges::transform(longer.medians, shorter.medians, ratios.begin(),
                         [](double a, double b) { return a / b; });
  return PercentilesOf(std::move(ratios)).median;
}

}  // namespace skiff
