// Copies that bypass the caches, for outputs too large to stay in them: the processor need not read
// a cache line that it writes whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace skiff {

// Outputs of at least this size are streamed: more than a last-level cache has room for.
inline constexpr int64_t kLeastStreamedBytes = int64_t{32} << 20;

// A memcpy whose whole cache lines bypass the caches. The same thread must call EndStreams before
// other threads read the target.
void StreamRow(const void* source, void* target, int64_t bytes);
void EndStreams();

// Copies a row, past the caches if `streams` and the row is long enough.
inline void CopyRow(const void* source, void* target, int64_t bytes, bool streams) {
  // In shorter rows, the partial lines at both ends and the calls cost more than streaming saves.
  constexpr int64_t kLeastBytes = 1024;
  if (streams && bytes >= kLeastBytes) {
    StreamRow(source, target, bytes);
  } else if (bytes > 0) {
    std::memcpy(target, source, static_cast<size_t>(bytes));
  }
}

}  // namespace skiff
