// What integer divisions refuse.
#pragma once

#include <cstdint>
#include <string_view>

#include "framework/base/error.h"

namespace skiff {

// Throws the Error of an op `type` for divisor `position`, which is 0.
[[noreturn]] inline void ThrowZeroDivisor(std::string_view type, int64_t position) {
  Throw(ErrorCode::kInvalidArgument, type, ": Y[", position,
        "] (in storage order) is 0, expected nonzero divisors for integers");
}

// Throws this Error if a divisor is 0.
template <typename T>
void CheckDivisors(std::string_view type, const T* divisors, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (divisors[i] == T{0}) ThrowZeroDivisor(type, i);
  }
}

}  // namespace skiff
