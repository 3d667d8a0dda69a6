#include "tools/benchmark/in_turn.h"

#include <algorithm>
#include <cmath>

#include "framework/base/error.h"
#include "tools/benchmark/run_times.h"

namespace skiff {
namespace {

// A sample, which is timed as a whole, takes at least this long, so that reading the clock (tens of
// nanoseconds) adds less than 1 %.
constexpr double kLeastSampleSeconds = 20e-6;
constexpr double kLongRunSeconds = 1e-3;

// Runs the work once or twice and returns the time of the last run. The other works have evicted
// its data from the caches, so the first run may be slow. In a run of a millisecond or more that is
// a small part, which isn't worth a second run.
double WarmUp(const std::function<void()>& run) {
  const double seconds = SecondsOf(run);
  return seconds < kLongRunSeconds ? SecondsOf(run) : seconds;
}

// Returns the seconds of each run, or, for short runs, the mean of each sample of several runs.
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
  // Short turns, so that a disturbance of seconds hits every work in the same turn, and ratios
  // within a turn stay right.
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
