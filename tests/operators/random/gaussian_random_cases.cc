#include "tests/operators/random/sample_statistics.h"

namespace skiff::harness {

void AddGaussianRandomCases(CaseList& cases) {
  AddRandomTensorCases("gaussian_random", {{"mean", 0.5f}, {"std", 2.0f}},
                       {.mean = 0.5, .deviation = 2}, cases);
}

}  // namespace skiff::harness
