#include "operators/common/running_statistic.h"

namespace skiff {

template <typename T>
T UpdatedStatistic(double momentum, T old, double moment) {
  return static_cast<T>(momentum * static_cast<double>(old) + (1 - momentum) * moment);
}

template float UpdatedStatistic(double, float, double);
template double UpdatedStatistic(double, double, double);

}  // namespace skiff
