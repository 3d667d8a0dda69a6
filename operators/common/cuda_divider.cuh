// Division by a number that a kernel gets as an argument: a multiplication and a shift instead of
// the some twenty instructions that a device needs for a division.
#pragma once

#include <cstdint>

#include "framework/base/error.h"

namespace skiff {

class CudaDivider {
 public:
  CudaDivider() : CudaDivider(1) {}
  // `divisor` is from 1 to 2^31 - 1.
  explicit CudaDivider(int64_t divisor) : divisor_(static_cast<uint32_t>(divisor)) {
    SKIFF_ENFORCE(divisor >= 1 && divisor < int64_t{1} << 31, kOutOfRange, "a divisor of ", divisor,
                  ", expected 1 to 2^31 - 1");
    while ((uint64_t{1} << shift_) < divisor_) ++shift_;
    // 2^(32 + shift) / divisor, rounded up, without its highest bit, which is 2^32.
    const uint64_t excess = (uint64_t{1} << shift_) - divisor_;
    multiplier_ = static_cast<uint32_t>((excess << 32) / divisor_ + 1);
  }

  // Returns n / divisor. n is less than 2^31.
  __device__ uint32_t Quotient(uint32_t n) const {
    const auto high = static_cast<uint32_t>((uint64_t{n} * multiplier_) >> 32);
    return (high + n) >> shift_;
  }
  // Sets n to the quotient and returns the remainder.
  __device__ uint32_t TakeRemainder(uint32_t* n) const {
    const uint32_t quotient = Quotient(*n);
    const uint32_t remainder = *n - quotient * divisor_;
    *n = quotient;
    return remainder;
  }

 private:
  uint32_t divisor_;
  uint32_t multiplier_ = 1;
  uint32_t shift_ = 0;
};

}  // namespace skiff
