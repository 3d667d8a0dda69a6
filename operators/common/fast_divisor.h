// Division by a number that a kernel gets as an argument: a multiplication and a shift, instead of
// the some twenty instructions that a device needs for a division.
#pragma once

#include <cstdint>

namespace skiff {

// Divides numbers below 2^31 by one that is from 1 to 2^31 - 1 (Granlund & Montgomery 1994).
class FastDivisor {
 public:
  constexpr FastDivisor() = default;  // by 1
  constexpr explicit FastDivisor(uint32_t divisor) : divisor_(divisor) {
    while ((uint64_t{1} << shift_) < divisor) ++shift_;
    // 2^(32 + shift) / divisor, rounded up, without its highest bit, which is 2^32.
    const uint64_t excess = (uint64_t{1} << shift_) - divisor;
    multiplier_ = static_cast<uint32_t>((excess << 32) / divisor + 1);
  }

  constexpr uint32_t Quotient(uint32_t number) const {
    return (static_cast<uint32_t>(uint64_t{number} * multiplier_ >> 32) + number) >> shift_;
  }
  // Sets the number to the quotient and returns the remainder.
  constexpr uint32_t TakeRemainder(uint32_t* number) const {
    const uint32_t quotient = Quotient(*number);
    const uint32_t remainder = *number - quotient * divisor_;
    *number = quotient;
    return remainder;
  }

 private:
  uint32_t divisor_ = 1;
  uint32_t multiplier_ = 1;
  uint32_t shift_ = 0;
};

}  // namespace skiff
