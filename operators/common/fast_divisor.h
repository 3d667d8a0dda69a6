// Division by a number that a kernel gets as an argument: a multiplication and a shift, instead of
// the some twenty instructions that a device needs for a division.
#pragma once

#include <cstdint>

namespace skiff {

// Divides numbers below 2^31 by a divisor of 1 or more (Granlund & Montgomery 1994). If that is
// larger than all of them, the quotients are 0.
class FastDivisor {
 public:
  constexpr FastDivisor() = default;  // by 1
  constexpr explicit FastDivisor(int64_t divisor)
      : divisor_(static_cast<uint32_t>(divisor < kLimit ? divisor : kLimit)) {
    while ((uint64_t{1} << shift_) < divisor_) ++shift_;
    // 2^(32 + shift) / divisor, rounded up, without its highest bit, which is 2^32.
    const uint64_t excess = (uint64_t{1} << shift_) - divisor_;
    multiplier_ = static_cast<uint32_t>((excess << 32) / divisor_ + 1);
  }

  // The sum has 32 bits, as the number and the product's upper half are below 2^31.
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
  static constexpr int64_t kLimit = int64_t{1} << 31;  // of numbers

  uint32_t divisor_ = 1;
  uint32_t multiplier_ = 1;
  uint32_t shift_ = 0;
};

}  // namespace skiff
