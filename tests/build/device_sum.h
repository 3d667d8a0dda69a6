#pragma once

#include <vector>

namespace skiff::build_test {

// The sum of the values, computed on the first CUDA device.
float SumOnDevice(const std::vector<float>& values);

}  // namespace skiff::build_test
