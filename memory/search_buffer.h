// A buffer as the search (arena_search.h) sees it.
#pragma once

#include <cstdint>

namespace skiff {

struct SearchBuffer {
  int64_t size = 0;       // > 0, in a unit of the caller's choice
  int64_t alignment = 1;  // > 0, in the same unit
  int32_t first = 0;      // the first and the last instant of its life, 0 <= first <= last
  int32_t last = 0;
};

}  // namespace skiff
