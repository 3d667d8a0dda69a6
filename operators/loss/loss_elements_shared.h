// How losses that are computed element by element are cut for threads.
#pragma once

#include <cstdint>

namespace skiff {

// Elements that are worth a thread: where each takes a few operations, and where it takes a
// logarithm or an exponential.
inline constexpr int64_t kLossGrain = 16384;
inline constexpr int64_t kLogLossGrain = 2048;

}  // namespace skiff
