#include "operators/common/philox_words.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/common/philox_words.cc"
#include "hwy/foreach_target.h"

// After foreach_target.h, since these headers are compiled once per instruction set as well.
#include "hwy/highway.h"
#include "operators/common/cpu/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

// As many consecutive blocks as kVectors vectors have lanes.
template <int kVectors, class D>
HWY_INLINE void WriteBlocks(D d, const RandomKey& key, uint64_t first_block, uint32_t* words) {
  const size_t lanes = hn::Lanes(d);
  const auto first = hn::Set(d, static_cast<uint32_t>(first_block));
  const auto first_high = hn::Set(d, static_cast<uint32_t>(first_block >> 32));
  hn::Vec<D> low[kVectors], high[kVectors], drawn[4 * kVectors];
#pragma GCC unroll 2
  for (size_t v = 0; v < kVectors; ++v) {
    low[v] = hn::Add(first, hn::Iota(d, static_cast<uint32_t>(v * lanes)));
    // The position has 64 bits: a carry into its upper word may happen between two lanes.
    const auto carries = hn::VecFromMask(d, hn::Lt(low[v], first));  // all bits: -1
    high[v] = hn::Sub(first_high, carries);
  }
  PhiloxBlocks<kVectors>(d, key, low, high, drawn);
#pragma GCC unroll 2
  for (size_t v = 0; v < kVectors; ++v) {
    const auto* of = drawn + 4 * v;
    hn::StoreInterleaved4(of[0], of[1], of[2], of[3], d, words + 4 * v * lanes);
  }
}

#endif

void Words(const RandomKey& key, uint64_t first_block, int64_t blocks, uint32_t* words) {
  int64_t done = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<uint32_t> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto write = [&](auto vectors) HWY_ATTR {
    for (; done + vectors() * lanes <= blocks; done += vectors() * lanes)
      WriteBlocks<vectors()>(d, key, first_block + static_cast<uint64_t>(done), words + 4 * done);
  };
  write(std::integral_constant<int, kPhiloxVectors>());
  write(std::integral_constant<int, 1>());
#endif
  const Philox philox(key);
  for (; done < blocks; ++done) {
    const Philox::Block block = philox.At(first_block + static_cast<uint64_t>(done));
    std::copy(block.begin(), block.end(), words + 4 * done);
  }
}

// Drops elements [0, count). Word i belongs to element i.
void DropByWords(const uint32_t* words, const DropoutRule& rule, int64_t count, const float* x,
                 float* out, uint8_t* mask) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> d_words;
  const hn::RebindToSigned<decltype(d)> d_ints;
  const hn::Rebind<uint8_t, decltype(d)> d_bytes;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto threshold = hn::Set(d_words, rule.threshold);
  const auto scale = hn::Set(d, rule.scale);
  const auto one = hn::Set(d_ints, 1);
  for (; i + lanes <= count; i += lanes) {
    const auto dropped = hn::RebindMask(d, hn::Lt(hn::LoadU(d_words, words + i), threshold));
    const auto scaled = hn::Mul(hn::LoadU(d, x + i), scale);
    hn::StoreU(hn::IfThenZeroElse(dropped, scaled), d, out + i);
    if (mask == nullptr) continue;
    const auto kept = hn::IfThenZeroElse(hn::RebindMask(d_ints, dropped), one);
    hn::StoreU(hn::DemoteTo(d_bytes, kept), d_bytes, mask + i);
  }
#endif
  for (; i < count; ++i) {
    const bool kept = words[i] >= rule.threshold;
    out[i] = kept ? x[i] * rule.scale : 0.0f;
    if (mask != nullptr) mask[i] = kept ? 1 : 0;
  }
}

void Dropout(const DropoutRule& rule, uint64_t first, int64_t count, const float* x, float* out,
             uint8_t* mask) {
  // Few enough words to stay in the first-level cache.
  constexpr int64_t kBatch = 1024;
  HWY_ALIGN uint32_t words[kBatch];
  for (int64_t done = 0; done < count; done += kBatch) {
    const int64_t batch = std::min(kBatch, count - done);
    Words(rule.key, (first + static_cast<uint64_t>(done)) / 4, (batch + 3) / 4, words);
    DropByWords(words, rule, batch, x + done, out + done, mask == nullptr ? nullptr : mask + done);
  }
}

void MaskedScale(const uint8_t* mask, const float* out_grad, float factor, int64_t count,
                 float* x_grad) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> d_ints;
  const hn::Rebind<uint8_t, decltype(d)> d_bytes;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto scale = hn::Set(d, factor);
  for (; i + lanes <= count; i += lanes) {
    const auto bytes = hn::PromoteTo(d_ints, hn::LoadU(d_bytes, mask + i));
    const auto dropped = hn::RebindMask(d, hn::Eq(bytes, hn::Zero(d_ints)));
    const auto scaled = hn::Mul(hn::LoadU(d, out_grad + i), scale);
    hn::StoreU(hn::IfThenZeroElse(dropped, scaled), d, x_grad + i);
  }
#endif
  for (; i < count; ++i) x_grad[i] = mask[i] != 0 ? out_grad[i] * factor : 0.0f;
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {

HWY_EXPORT(Words);
HWY_EXPORT(Dropout);
HWY_EXPORT(MaskedScale);

void PhiloxWords(const RandomKey& key, uint64_t first_block, int64_t blocks, uint32_t* words) {
  HWY_DYNAMIC_DISPATCH(Words)(key, first_block, blocks, words);
}

void DropoutFloat(const DropoutRule& rule, uint64_t first, int64_t count, const float* x,
                  float* out, uint8_t* mask) {
  HWY_DYNAMIC_DISPATCH(Dropout)(rule, first, count, x, out, mask);
}

void MaskedScaleFloat(const uint8_t* mask, const float* out_grad, float scale, int64_t count,
                      float* x_grad) {
  HWY_DYNAMIC_DISPATCH(MaskedScale)(mask, out_grad, scale, count, x_grad);
}

}  // namespace skiff
#endif
