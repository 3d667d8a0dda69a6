#pragma once

#include <chrono>

namespace skiff {

// Returns the seconds of a clock that only goes forward.
inline double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace skiff
