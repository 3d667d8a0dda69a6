#include "framework/op/lod_group.h"

#include <algorithm>

namespace skiff {

bool HaveSameCounts(const LoD& a, const LoD& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.size() == y.size() && x.back() == y.back();
  });
}

}  // namespace skiff
