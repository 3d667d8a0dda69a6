// Integer division that neither traps nor overflows.
#pragma once

#include <cstdint>
#include <type_traits>

#include "framework/base/error.h"
#include "operators/common/integer.h"

namespace skiff {

// Returns x / y, rounded towards zero. y must not be 0. The lowest number divided by -1 wraps
// around to itself.
template <typename T>
T WrappingDivide(T x, T y) {
  if (std::is_signed_v<T> && y == static_cast<T>(-1)) return WrappingSub(T{0}, x);
  return static_cast<T>(x / y);
}

// Throws the Error of an op `type` for divisor `position`, which is 0.
[[noreturn]] inline void ThrowZeroDivisor(const char* type, int64_t position) {
  Throw(ErrorCode::kInvalidArgument, type, ": Y[", position,
        "] (in storage order) is 0, expected nonzero divisors for integers");
}

// Throws it if one of the divisors is 0.
template <typename T>
void CheckDivisors(const char* type, const T* divisors, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (divisors[i] == T{0}) ThrowZeroDivisor(type, i);
  }
}

}  // namespace skiff
