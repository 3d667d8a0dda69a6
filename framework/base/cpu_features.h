// What the processor of this machine can do.
#pragma once

#include <cstdint>
#include <string>

namespace skiff {

// Channels in a block of a blocked layout: as many floats as a vector register holds where the
// processor has AVX-512 (16) or AVX2 (8), else 1 (no blocking).
int32_t PreferredChannelBlock();

// What the processor calls itself: "AMD EPYC 9B45". "unknown" where it has no way to say so.
std::string CpuModelName();

}  // namespace skiff
