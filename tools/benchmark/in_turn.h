// Times several pieces of work in turn, so that the noise of a shared machine affects all of them
// alike.
#pragma once

#include <functional>
#include <vector>

namespace skiff {

struct InTurnOptions {
  double seconds = 0.5;  // the least measured time of each work, over all turns
  int turns = 5;
};

// The times of one run of a work, in seconds.
struct TurnTimes {
  std::vector<double> medians;  // of each turn
  double fastest = 0;           // over all turns: the run least disturbed by others
};

// Times the works. In each turn every work runs, in the given order, for its share of the time:
// first once or twice without being timed, to bring its data back into the caches, then at least
// once. Short runs are timed several at a time, so that reading the clock doesn't matter. Throws
// Error for no turns.
std::vector<TurnTimes> TimeInTurn(const std::vector<std::function<void()>>& works,
                                  const InTurnOptions& options);

// Returns the median of the turns.
double MedianOf(const TurnTimes& times);
// Returns the median over the turns of the ratio of both times in the same turn. Throws Error
// unless both have equally many turns, at least one.
double MedianRatio(const TurnTimes& longer, const TurnTimes& shorter);

}  // namespace skiff
