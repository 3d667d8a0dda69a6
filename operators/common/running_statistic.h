// The update of a running statistic, such as a running mean, by the moment of a batch.
#pragma once

namespace skiff {

// In place of a batch's variance: the batch leaves the running mean and variance as they are.
inline constexpr double kNoBatchVariance = -1;

// Returns momentum · old + (1 - momentum) · moment, rounded once. It isn't inlined: ops that update
// the same statistic get the same bits, however each of them is compiled. T is float or double.
template <typename T>
T UpdatedStatistic(double momentum, T old, double moment);

}  // namespace skiff
