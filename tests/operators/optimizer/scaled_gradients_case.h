// Gradients of a scaled loss, for cases of the ops that unscale and check such gradients.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {

// Returns a tensor of each shape, with numbers of the size that a scaled gradient has. Tensor i has
// dtype i of `dtypes`, which repeat; the dtype of the run if `dtypes` is empty.
inline std::vector<Array> ScaledGradientsOf(const std::vector<Shape>& shapes,
                                            const std::vector<DType>& dtypes = {}) {
  std::vector<Array> gradients;
  for (size_t i = 0; i < shapes.size(); ++i) {
    Array x = Uniform(shapes[i], i + 1, -100, 100);
    if (!dtypes.empty()) {
      x.fixed_dtype = true;
      x.dtype = dtypes[i % dtypes.size()];
    }
    gradients.push_back(std::move(x));
  }
  return gradients;
}

}  // namespace skiff::harness
