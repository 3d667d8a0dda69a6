// Measures the cost of an update's memory traffic: the same passes over the same number of arrays,
// with the least arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/tensor/tensor.h"

namespace skiff {

// One pass over several float32 arrays: it reads `reads` arrays (1 or 2), and reads and writes
// `updates` more arrays (0 to 4).
struct Sweep {
  int reads = 1;
  int updates = 0;
};

// Returns the bytes that the passes read and write per element.
int64_t BytesPerElement(const std::vector<Sweep>& sweeps);
// Returns the number of arrays that the passes need if arrays are shared.
int ArrayCount(const std::vector<Sweep>& sweeps);

// Owns arrays and runs the passes over the arrays, one pass after the other: x[k] += a g for each
// updated array, where g is the array read or the sum of both. A pass that updates nothing sums the
// elements it reads. Uses this machine's vectors and all OpenMP threads, divided as in the kernels
// of update ops.
class MemoryStream {
 public:
  // Throws Error for a number of arrays that Sweep doesn't allow, and if memory runs out.
  MemoryStream(std::vector<Sweep> sweeps, int64_t elements);

  void Run();

  int64_t bytes() const { return elements_ * BytesPerElement(sweeps_); }
  // Returns array i. The first arrays are read only.
  const Tensor& array(size_t i) const { return tensors_[i]; }
  // Returns the sum of all elements read by passes without updates.
  double sum() const { return sum_; }

 private:
  std::vector<Sweep> sweeps_;
  int64_t elements_;
  std::vector<Tensor> tensors_;
  std::vector<float*> arrays_;
  double sum_ = 0;
};

}  // namespace skiff
