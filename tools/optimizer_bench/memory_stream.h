// What an update of parameters costs in memory alone: the same passes over as many arrays, with the
// least arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/tensor/tensor.h"

namespace skiff {

// One pass over arrays of float32 that lie side by side: `reads` of them (1 or 2) are read,
// `updates` more (0 to 4) are read and written.
struct Sweep {
  int reads = 1;
  int updates = 0;
};

// Bytes that the passes read and write for each element.
int64_t BytesPerElement(const std::vector<Sweep>& sweeps);
// Arrays that they need, if each pass takes those of the others.
int ArrayCount(const std::vector<Sweep>& sweeps);

// Arrays of its own, and the passes over them, one after the other: x[k] += a g for each updated
// array, g being what is read, or their sum. Without an array to update the elements of what is
// read are added up. Vectors of this machine's width, over all OpenMP threads, divided as the
// kernels of update ops are.
class MemoryStream {
 public:
  // Error for a number of arrays that Sweep doesn't name, and if there is no memory.
  MemoryStream(std::vector<Sweep> sweeps, int64_t elements);

  void Run();

  int64_t bytes() const { return elements_ * BytesPerElement(sweeps_); }
  // Array i; the first ones are those that are read.
  const Tensor& array(size_t i) const { return tensors_[i]; }
  // Of all elements that passes without updates have read.
  double sum() const { return sum_; }

 private:
  std::vector<Sweep> sweeps_;
  int64_t elements_;
  std::vector<Tensor> tensors_;
  std::vector<float*> arrays_;
  double sum_ = 0;
};

}  // namespace skiff
