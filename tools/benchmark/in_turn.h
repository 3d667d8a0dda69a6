// Several pieces of work timed in turn, so that the noise of a shared machine hits all of them.
#pragma once

#include <functional>
#include <vector>

namespace skiff {

struct InTurnOptions {
  double seconds = 0.5;  // least measured time of each work, over all its turns
  int turns = 5;
};

// Seconds of one run of a work.
struct TurnTimes {
  std::vector<double> medians;  // of each turn
  double fastest = 0;           // of all turns: what the neighbours disturbed the least
};

// In each turn every work runs, in the given order, until its share of the time is over: once or
// twice without being counted, which brings its data back to the caches, then at least once. Short
// runs are timed several at a time, so that the clock doesn't count. Error for no turns.
std::vector<TurnTimes> TimeInTurn(const std::vector<std::function<void()>>& works,
                                  const InTurnOptions& options);

// The median of the turns.
double MedianOf(const TurnTimes& times);
// The median over the turns of how many times as long as `shorter` the other one took in the same
// turn. Error unless both have as many turns, at least one.
double MedianRatio(const TurnTimes& longer, const TurnTimes& shorter);

}  // namespace skiff
