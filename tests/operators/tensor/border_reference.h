// The values in the borders of pad2d and pad3d.
#pragma once

#include <cstdint>
#include <string>

#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

// Returns the source of a position, found step by step, or -1 if it has none.
inline int64_t BorderSource(const std::string& mode, int64_t at, int64_t extent) {
  while (at < 0 || at >= extent) {
    if (mode == "constant") return -1;
    if (mode == "reflect") {
      at = at < 0 ? -at : 2 * (extent - 1) - at;
    } else if (mode == "circular") {
      at += at < 0 ? extent : -extent;
    } else {
      at += at < 0 ? 1 : -1;
    }
  }
  return at;
}

}  // namespace skiff::harness
