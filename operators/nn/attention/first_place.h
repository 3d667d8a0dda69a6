// Where the first of neighbouring tokens is among the places of a sequence.
#pragma once

#include <cstdint>

namespace skiff {

// Returns the position, moved to [0, last], so that a wrong position leads nowhere else. On
// devices, too.
constexpr int64_t ClampedPlace(int64_t position, int64_t last) {
  return position < 0 ? 0 : position < last ? position : last;
}

}  // namespace skiff
