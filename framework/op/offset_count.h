// A bound on the LoDs that shape rules derive.
#pragma once

#include <cstdint>

namespace skiff {

inline constexpr int64_t kMostOffsets = int64_t{1} << 22;

// Throws Error (kUnimplemented) if a LoD would have more than kMostOffsets offsets. What a rule
// derives (OpContext::DeriveLoD, DependOnLoD) is checked, in runs as well. A rule calls this
// function before it makes a LoD for a number of rows that has another source.
void CheckOffsetCount(int64_t count);

}  // namespace skiff
