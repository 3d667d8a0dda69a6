// A bound on the LoDs that shape rules derive.
#pragma once

#include <cstdint>

namespace skiff {

inline constexpr int64_t kMostOffsets = int64_t{1} << 22;

// Throws Error (kUnimplemented) if a LoD would have more than kMostOffsets offsets. Rules call it
// before they make a LoD for as many rows as something else says. DeriveLoD checks what a rule has
// made while a plan is made.
void CheckOffsetCount(int64_t count);

}  // namespace skiff
