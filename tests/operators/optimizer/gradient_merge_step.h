// A step of gradient_merge and gradient_merge_rows in their cases.
#pragma once

#include <cstdint>
#include <string>

namespace skiff::harness {

struct GradientMergeStep {
  std::string name;
  int64_t count = 1;  // the input Count
  int64_t steps = 4;  // attributes
  bool mean = true;
};

}  // namespace skiff::harness
