// Copies that write past the caches, for outputs too large to be found there again: a line that is
// written whole need not be read before.
#pragma once

#include <cstdint>

namespace skiff {

// More than last-level caches leave to one tensor.
inline constexpr int64_t kLeastStreamedBytes = int64_t{32} << 20;

// memcpy. With `streams`, whole cache lines are written past the caches; EndStreams, on the same
// thread, then comes before others read them.
void CopyRow(const void* source, void* target, int64_t bytes, bool streams);
void EndStreams();

}  // namespace skiff
