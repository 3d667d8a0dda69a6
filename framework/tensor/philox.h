// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as
// 1, 2, 3", SC 2011, section 3.3). The value at a position depends on key and position alone, so
// any thread, GPU or replica draws the same numbers. Thread-safe.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace skiff {

// The key of a random op's numbers. Clones keep `op_id`; `step` is the training step.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t op_id = 0;
  uint64_t step = 0;
  // Unless it is nullptr: where kernels on a device read the step instead, so that one graph of
  // kernels may be launched in many steps.
  const uint64_t* device_step = nullptr;
};

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  explicit Philox(const RandomKey& key)
      : key_{static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)},
        stream_{static_cast<uint32_t>(key.op_id), static_cast<uint32_t>(key.step)} {}

  // Returns the four words (128 bits) at `position` of the stream.
  Block At(uint64_t position) const {
    Block c{static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), stream_[0],
            stream_[1]};
    uint32_t k0 = key_[0];
    uint32_t k1 = key_[1];
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c[0];
      const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
      c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
           static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return c;
  }

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 2> stream_;
};

// Returns a uniform number in [0, 1) with 24 random bits.
inline float UnitFloat(uint32_t word) { return static_cast<float>(word >> 8) * 0x1.0p-24f; }

// Returns a uniform number in [0, 1) with 53 random bits.
inline double UnitDouble(uint32_t high, uint32_t low) {
  return static_cast<double>((uint64_t{high} << 21) ^ (low >> 11)) * 0x1.0p-53;
}

// Returns two independent standard normal numbers (Box & Muller 1958).
inline std::array<double, 2> NormalPair(const Philox::Block& words) {
  const double radius = std::sqrt(-2.0 * std::log1p(-UnitDouble(words[0], words[1])));
  const double angle = 6.283185307179586 * UnitDouble(words[2], words[3]);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace skiff
