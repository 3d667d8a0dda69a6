// Arrays of two-byte floats convert as single numbers do, on every instruction set. The BUILD file
// runs this once for each value of SKIFF_MAX_ISA.
#include "operators/common/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "framework/base/error.h"
#include "operators/common/half_arrays.h"
#include "tests/harness/instruction_set.h"

namespace skiff {
namespace {

// Since the length is odd, each number gets to every lane of a vector and to the remainder.
std::vector<uint16_t> AllHalves() {
  std::vector<uint16_t> halves(65536 + 1);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  return halves;
}

// Every sign, exponent and leading fraction, followed by bits that round up, down and to even.
std::vector<float> ManyFloats() {
  std::vector<float> floats;
  for (uint32_t high = 0; high <= 0xffffu; ++high) {
    for (const uint32_t low : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x2fffu, 0x3000u,
                               0x3001u, 0x7fffu, 0x8000u, 0x8001u, 0xf000u, 0xffffu}) {
      floats.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  floats.push_back(1.0f);
  return floats;
}

template <typename Half>
void ExpectBitsOfSingleNumbers() {
  const HalfArrays arrays = HalfArraysOf(kDTypeOf<Half>);
  const std::vector<uint16_t> halves = AllHalves();
  std::vector<float> widened(halves.size());
  arrays.to_floats(halves.data(), static_cast<int64_t>(halves.size()), widened.data());
  int wrong = 0;
  for (size_t i = 0; i < halves.size(); ++i) {
    Half number;
    number.bits = halves[i];
    const float expected = static_cast<float>(number);
    wrong += std::bit_cast<uint32_t>(widened[i]) != std::bit_cast<uint32_t>(expected) ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0) << "of a half";
  const std::vector<float> floats = ManyFloats();
  std::vector<uint16_t> rounded(floats.size());
  arrays.from_floats(floats.data(), static_cast<int64_t>(floats.size()), rounded.data());
  wrong = 0;
  for (size_t i = 0; i < floats.size(); ++i) wrong += rounded[i] != Half(floats[i]).bits ? 1 : 0;
  EXPECT_EQ(wrong, 0) << "of a float";
}

TEST(HalfArrays, HaveTheBitsOfSingleNumbers) {
  for (const int64_t set : harness::InstructionSets()) {
    SCOPED_TRACE(harness::InstructionSetName(set));
    const harness::InstructionSetLimit limit(set);
    ExpectBitsOfSingleNumbers<Float16>();
    ExpectBitsOfSingleNumbers<BFloat16>();
  }
}

TEST(HalfArrays, AreOfTwoByteFloats) {
  EXPECT_THROW(HalfArraysOf(DType::kFloat32), Error);
  EXPECT_THROW(HalfArraysOf(DType::kInt16), Error);
}

}  // namespace
}  // namespace skiff
