#pragma once

#include <cstdint>
#include <span>

namespace skiff {

// Whether two lists of dims have one length and the same dims; a negative one, which is unknown,
// agrees with any.
bool DimsAgree(std::span<const int64_t> a, std::span<const int64_t> b);

}  // namespace skiff
