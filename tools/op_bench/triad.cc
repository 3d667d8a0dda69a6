#include "tools/op_bench/triad.h"

#include <cstdint>
#include <vector>

#include "framework/tensor/tensor.h"
#include "tools/benchmark/run_times.h"

namespace skiff {

double MeasureTriad() {
  constexpr int64_t kCount = 1 << 24;
  constexpr int kRuns = 9;
  // Tensors, because their memory is on huge pages, which the bandwidth depends on.
  const auto make = [] { return Tensor({kCount}, DType::kFloat32); };
  Tensor a = make();
  Tensor b = make();
  Tensor c = make();
  float* sums = a.data<float>();
  float* terms = b.data<float>();
  float* factors = c.data<float>();
  // Each thread first touches the part that it works on, so that its pages are on its NUMA node.
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < kCount; ++i) {
    sums[i] = 0;
    terms[i] = 1;
    factors[i] = 2;
  }
  std::vector<double> seconds;
  for (int run = 0; run < kRuns; ++run) {
    seconds.push_back(SecondsOf([&] {
#pragma omp parallel for simd schedule(static)
      for (int64_t i = 0; i < kCount; ++i) sums[i] = terms[i] + 3.0f * factors[i];
    }));
  }
  return 3.0 * kCount * sizeof(float) / PercentilesOf(seconds).median;
}

}  // namespace skiff
