// Which weights of a tile of attention are dropped.
//
// Included once per instruction set, through Highway's foreach_target.
#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "operators/common/cpu/philox-inl.h"
#include "operators/nn/attention/attention_products-inl.h"

#if defined(SKIFF_OPERATORS_NN_ATTENTION_ATTENTION_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SKIFF_OPERATORS_NN_ATTENTION_ATTENTION_DROPOUT_INL_H_
#undef SKIFF_OPERATORS_NN_ATTENTION_ATTENTION_DROPOUT_INL_H_
#else
#define SKIFF_OPERATORS_NN_ATTENTION_ATTENTION_DROPOUT_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::CappedTag<uint32_t, 16>;

// The words of a stream, kCount for each lane at a time. Lanes begin at different words.
class LaneWords {
 public:
  static constexpr int64_t kCount = 4 * kPhiloxVectors;

  // Lane i begins at word first + i * step.
  LaneWords(const RandomKey& key, uint64_t first, uint64_t step) : key_(key) {
    const Words d;
    HWY_ALIGN uint32_t low[kLanesOf<uint32_t>];
    HWY_ALIGN uint32_t high[kLanesOf<uint32_t>];
    HWY_ALIGN uint32_t shift[kLanesOf<uint32_t>];
    uint32_t any = 0;
    for (int64_t i = 0; i < kLanesOf<uint32_t>; ++i) {
      const uint64_t word = first + static_cast<uint64_t>(i) * step;
      low[i] = static_cast<uint32_t>(word / 4);
      high[i] = static_cast<uint32_t>(word / 4 >> 32);
      shift[i] = static_cast<uint32_t>(word % 4);
      any |= shift[i];
    }
    low_ = hn::Load(d, low);
    high_ = hn::Load(d, high);
    shift_ = hn::Load(d, shift);
    is_aligned_ = any == 0;
    if (!is_aligned_) Draw<1>(drawn_ + kCount);
  }

  // Writes the next words: `count` of them, at most kCount, a vector each, kTile apart.
  void Next(int64_t count, uint32_t* to) {
    const Words d;
    if (is_aligned_) {
      Draw<kPhiloxVectors>(drawn_);
    } else {
      std::copy(drawn_ + kCount, drawn_ + kCount + 4, drawn_);
      Draw<kPhiloxVectors>(drawn_ + 4);
    }
    for (int64_t i = 0; i < count; ++i, to += kTile) {
      auto word = drawn_[i];
      for (uint32_t shift = 1; shift < 4 && !is_aligned_; ++shift)
        word = hn::IfThenElse(hn::Eq(shift_, hn::Set(d, shift)), drawn_[i + shift], word);
      hn::Store(word, d, to);
    }
  }

 private:
  // The next kBlocks blocks.
  template <int kBlocks>
  void Draw(hn::Vec<Words>* to) {
    const Words d;
    hn::Vec<Words> low[kBlocks], high[kBlocks];
    for (int i = 0; i < kBlocks; ++i) {
      low[i] = low_;
      high[i] = high_;
      low_ = hn::Add(low_, hn::Set(d, 1));
      const auto carries = hn::Eq(low_, hn::Zero(d));
      high_ = hn::IfThenElse(carries, hn::Add(high_, hn::Set(d, 1)), high_);
    }
    PhiloxBlocks<kBlocks>(d, key_, low, high, to);
  }

  RandomKey key_;
  hn::Vec<Words> low_;
  hn::Vec<Words> high_;
  hn::Vec<Words> shift_;
  // The words from the lanes' first block on. Words before the lanes' own are passed over.
  hn::Vec<Words> drawn_[kCount + 4];
  bool is_aligned_;
};

// The words of a tile.
inline void DrawWords(const WeightDropout& dropout, const AttentionSizes& sizes,
                      const TileExtent& tile, uint32_t* words) {
  if (dropout.threshold == 0) return;
  const auto keys = static_cast<uint64_t>(sizes.keys);
  for (int64_t q = 0; q < tile.queries; q += kLanesOf<uint32_t>) {
    const auto query = static_cast<uint64_t>(tile.query + q);
    LaneWords lanes(dropout.key,
                    dropout.first_word + query * keys + static_cast<uint64_t>(tile.key), keys);
    for (int64_t k = 0; k < tile.keys; k += LaneWords::kCount)
      lanes.Next(std::min(LaneWords::kCount, tile.keys - k), words + k * kTile + q);
  }
}

// Which of the lanes' words say that a weight is dropped.
template <class D>
HWY_INLINE hn::Mask<D> DroppedLanes(D d, const uint32_t* words, uint32_t threshold) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const hn::RebindToUnsigned<D> d_words;
    return hn::RebindMask(d, hn::Lt(hn::Load(d_words, words), hn::Set(d_words, threshold)));
  } else {
    const hn::Rebind<uint32_t, D> d_words;
    const hn::RebindToUnsigned<D> d_wide;
    const auto wide = hn::PromoteTo(d_wide, hn::Load(d_words, words));
    return hn::RebindMask(d, hn::Lt(wide, hn::Set(d_wide, uint64_t{threshold})));
  }
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
