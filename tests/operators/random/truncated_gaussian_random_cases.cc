#include "tests/operators/random/sample_statistics.h"

namespace skiff::harness {

void AddTruncatedGaussianRandomCases(CaseList& cases) {
  // The standard deviation of a standard normal number cut at ±2:
  // sqrt(1 - 2 * 2 * phi(2) / (2 * Phi(2) - 1)).
  constexpr double kCutDeviation = 0.8796256610342398;
  AddRandomTensorCases("truncated_gaussian_random", {{"mean", 0.5f}, {"std", 2.0f}},
                       {.mean = 0.5, .deviation = 2 * kCutDeviation, .low = -3.5, .high = 4.5},
                       cases);
}

}  // namespace skiff::harness
