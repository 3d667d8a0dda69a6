#include "framework/tensor/dims_agree.h"

#include <algorithm>

namespace skiff {

bool DimsAgree(std::span<const int64_t> a, std::span<const int64_t> b) {
  return std::ranges::equal(a, b, [](int64_t x, int64_t y) { return x < 0 || y < 0 || x == y; });
}

}  // namespace skiff
