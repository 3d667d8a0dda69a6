// The type in which numbers of another type are summed.
#pragma once

#include <cstdint>
#include <type_traits>

namespace skiff {

// The type that carries a sum of T. Integers are summed modulo 2^64, which the cast to T turns into
// two's complement.
template <typename T>
using SumOf = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

}  // namespace skiff
