// The numbers of framework/tensor/philox.h on the device: the same words.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "framework/tensor/philox.h"

namespace skiff {

__device__ inline uint64_t StepOf(const RandomKey& key) {
  return key.device_step == nullptr ? key.step : *key.device_step;
}

class DevicePhilox {
 public:
  struct Block {
    uint32_t words[4];
  };

  __host__ __device__ explicit DevicePhilox(const RandomKey& key)
      : key_{static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)},
        op_id_(static_cast<uint32_t>(key.op_id)),
        step_(static_cast<uint32_t>(key.step)),
        device_step_(key.device_step) {}

  // Returns the four words at `position` of the stream.
  __device__ Block At(uint64_t position) const {
    uint32_t a = static_cast<uint32_t>(position);
    uint32_t b = static_cast<uint32_t>(position >> 32);
    uint32_t c = op_id_;
    uint32_t d = device_step_ == nullptr ? step_ : static_cast<uint32_t>(*device_step_);
    uint32_t k0 = key_[0];
    uint32_t k1 = key_[1];
#pragma unroll
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53} * a;
      const uint64_t p1 = uint64_t{0xCD9E8D57} * c;
      a = static_cast<uint32_t>(p1 >> 32) ^ b ^ k0;
      b = static_cast<uint32_t>(p1);
      c = static_cast<uint32_t>(p0 >> 32) ^ d ^ k1;
      d = static_cast<uint32_t>(p0);
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return {{a, b, c, d}};
  }

 private:
  uint32_t key_[2];
  uint32_t op_id_;
  uint32_t step_;
  const uint64_t* device_step_;
};

// UnitFloat and UnitDouble of philox.h.
__device__ inline float DeviceUnitFloat(uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1.0p-24f;
}

__device__ inline double DeviceUnitDouble(uint32_t high, uint32_t low) {
  return static_cast<double>((uint64_t{high} << 21) ^ (low >> 11)) * 0x1.0p-53;
}

}  // namespace skiff
