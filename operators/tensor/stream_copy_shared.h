// Copies that write past the caches, for outputs too large to be found there again: a line that is
// written whole need not be read before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace skiff {

// More than last-level caches leave to one tensor.
inline constexpr int64_t kLeastStreamedBytes = int64_t{32} << 20;

// memcpy that writes whole cache lines past the caches. EndStreams, on the same thread, comes
// before others read them.
void StreamRow(const void* source, void* target, int64_t bytes);
void EndStreams();

// Either, as `streams` and the size of the row say.
inline void CopyRow(const void* source, void* target, int64_t bytes, bool streams) {
  // Below it the pieces of lines at both ends, and the calls, outweigh what is saved.
  constexpr int64_t kLeastBytes = 1024;
  if (streams && bytes >= kLeastBytes) {
    StreamRow(source, target, bytes);
  } else if (bytes > 0) {
    std::memcpy(target, source, static_cast<size_t>(bytes));
  }
}

}  // namespace skiff
