// Philox4x32-10 on vectors; framework/tensor/philox.h has the scalar form and the source.
//
// Included once per instruction set, through Highway's foreach_target.
#include <cstdint>

#include "framework/tensor/philox.h"
#include "hwy/highway.h"

#if defined(SKIFF_OPERATORS_COMMON_CPU_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKIFF_OPERATORS_COMMON_CPU_PHILOX_INL_H_
#undef SKIFF_OPERATORS_COMMON_CPU_PHILOX_INL_H_
#else
#define SKIFF_OPERATORS_COMMON_CPU_PHILOX_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

template <class V>
struct PhiloxState {
  V c0;
  V c1;
  V c2;
  V c3;
};

// The ten rounds of kChains vectors, which take turns: that hides the latency of multiplications.
// V has lanes of uint64, of which only the lower halves count, here and in the result.
template <int kChains, class V>
HWY_INLINE void PhiloxRounds(const RandomKey& key, PhiloxState<V>* chains) {
  const hn::DFromV<V> d;
  const hn::Repartition<uint32_t, decltype(d)> d32;
  const auto multiply = [&](auto a, auto b) HWY_ATTR {
    return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
  };
  const auto m0 = hn::Set(d, uint64_t{0xD2511F53u});
  const auto m1 = hn::Set(d, uint64_t{0xCD9E8D57u});
  uint32_t k0 = static_cast<uint32_t>(key.seed);
  uint32_t k1 = static_cast<uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const auto key0 = hn::Set(d, uint64_t{k0});
    const auto key1 = hn::Set(d, uint64_t{k1});
#pragma GCC unroll 8
    for (int i = 0; i < kChains; ++i) {
      PhiloxState<V>& s = chains[i];
      const auto p0 = multiply(s.c0, m0);
      const auto p1 = multiply(s.c2, m1);
      s = {hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), s.c1), key0), p1,
           hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), s.c3), key1), p0};
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

#endif

// The vectors of blocks that PhiloxBlocks draws together in the least time for each: on a Zen 5,
// with 512 bits, a word takes 0.31 ns for 1, 0.23 for 2 and 0.30 for 4.
inline constexpr int kPhiloxVectors = 2;

// Sets words[4 * v + w] to word w of the blocks whose positions have the low words low[v] and the
// high words high[v], a block a lane, for kVectors vectors. D has lanes of uint32.
template <int kVectors, class D, class V = hn::Vec<D>>
HWY_INLINE void PhiloxBlocks(D d, const RandomKey& key, const V* low, const V* high, V* words) {
#if HWY_TARGET == HWY_SCALAR
  for (int v = 0; v < kVectors; ++v) {
    const uint64_t position = uint64_t{hn::GetLane(high[v])} << 32 | hn::GetLane(low[v]);
    const Philox::Block block = Philox(key).At(position);
    for (size_t i = 0; i < block.size(); ++i) words[4 * v + i] = hn::Set(d, block[i]);
  }
#else
  // Blocks at even and at odd lanes apart, each word in the lower half of a 64-bit lane:
  // multiplications read their factors there, so the upper halves do no harm.
  const hn::Repartition<uint64_t, D> d64;
  using Wide = hn::Vec<decltype(d64)>;
  const auto c2 = hn::Set(d64, key.op_id & 0xFFFFFFFFu);
  const auto c3 = hn::Set(d64, key.step & 0xFFFFFFFFu);
  PhiloxState<Wide> s[2 * kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    s[2 * v] = {hn::BitCast(d64, low[v]), hn::BitCast(d64, high[v]), c2, c3};
    s[2 * v + 1] = {hn::ShiftRight<32>(hn::BitCast(d64, low[v])),
                    hn::ShiftRight<32>(hn::BitCast(d64, high[v])), c2, c3};
  }
  PhiloxRounds<2 * kVectors>(key, s);
  const auto join = [&](auto lower, auto upper) HWY_ATTR {
    return hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(upper)), hn::BitCast(d, lower));
  };
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const auto& even = s[2 * v];
    const auto& odd = s[2 * v + 1];
    words[4 * v] = join(even.c0, odd.c0);
    words[4 * v + 1] = join(even.c1, odd.c1);
    words[4 * v + 2] = join(even.c2, odd.c2);
    words[4 * v + 3] = join(even.c3, odd.c3);
  }
#endif
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SKIFF_OPERATORS_COMMON_CPU_PHILOX_INL_H_
