// The least work that losses give a thread.
#pragma once

#include <cstdint>

namespace skiff {

// The number of elements that is worth a thread, if each takes a few operations, and if each takes
// a logarithm or an exponential.
inline constexpr int64_t kLossGrain = 16384;
inline constexpr int64_t kLogLossGrain = 2048;

}  // namespace skiff
