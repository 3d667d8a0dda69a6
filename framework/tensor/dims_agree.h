#pragma once

#include <cstdint>
#include <span>

namespace skiff {

// Returns whether two lists of dims have equal length and equal dims. A negative dim is unknown and
// equals any other.
bool DimsAgree(std::span<const int64_t> a, std::span<const int64_t> b);

}  // namespace skiff
