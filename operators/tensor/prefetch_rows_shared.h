// Rows that lie apart are asked for ahead of time: the processor's own prefetching follows only
// what goes on within a page.
#pragma once

#include <algorithm>
#include <cstdint>

namespace skiff {

// How many rows further the row is that should be asked for while one is copied.
inline int64_t RowsAhead(int64_t row_bytes) {
  constexpr int64_t kBytesAhead = 4096;
  return std::clamp<int64_t>(kBytesAhead / std::max<int64_t>(row_bytes, 1), 1, 32);
}

// Asks for the beginning of a row.
inline void PrefetchRow(const void* row, int64_t row_bytes) {
  constexpr int64_t kLine = 64;
  constexpr int64_t kMostBytes = 1024;
  const char* bytes = static_cast<const char*>(row);
  for (int64_t i = 0; i < std::min(row_bytes, kMostBytes); i += kLine) {
    __builtin_prefetch(bytes + i);
  }
}

}  // namespace skiff
