#include "operators/nn/normalization/dropout_rows.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "operators/common/philox_words.h"

// The loops below are compiled once per instruction set that @highway leaves enabled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/normalization/dropout_rows.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;
using Ints = hn::RebindToSigned<Floats>;
using Bytes = hn::Rebind<uint8_t, Floats>;

// Words for all elements of `terms`, of which a kept one is multiplied by `scale`.
void AddByWords(const RowTerms<float>& terms, const uint32_t* words, uint32_t threshold,
                float scale, float* sum, uint8_t* mask) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto thresholds = hn::Set(Words(), threshold);
  const auto scales = hn::Set(d, scale);
  const auto one = hn::Set(Ints(), 1);
  int64_t i = 0;
  for (; i + lanes <= terms.count; i += lanes) {
    auto value = hn::LoadU(d, terms.x + i);
    if (terms.bias != nullptr) value = hn::Add(value, hn::LoadU(d, terms.bias + i));
    const auto dropped = hn::Lt(hn::LoadU(Words(), words + i), thresholds);
    value = hn::IfThenZeroElse(hn::RebindMask(d, dropped), hn::Mul(value, scales));
    if (terms.residual != nullptr) value = hn::Add(value, hn::LoadU(d, terms.residual + i));
    hn::StoreU(value, d, sum + i);
    if (mask == nullptr) continue;
    const auto kept = hn::IfThenZeroElse(hn::RebindMask(Ints(), dropped), one);
    hn::StoreU(hn::DemoteTo(Bytes(), kept), Bytes(), mask + i);
  }
  for (; i < terms.count; ++i) {
    const bool kept = words[i] >= threshold;
    const float biased = terms.bias == nullptr ? terms.x[i] : terms.x[i] + terms.bias[i];
    const float value = kept ? biased * scale : 0.0f;
    sum[i] = terms.residual == nullptr ? value : value + terms.residual[i];
    if (mask != nullptr) mask[i] = kept ? 1 : 0;
  }
}

void AddScaled(const RowTerms<float>& terms, float scale, float* sum) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto scales = hn::Set(d, scale);
  int64_t i = 0;
  for (; i + lanes <= terms.count; i += lanes) {
    auto value = hn::LoadU(d, terms.x + i);
    if (terms.bias != nullptr) value = hn::Add(value, hn::LoadU(d, terms.bias + i));
    value = hn::Mul(value, scales);
    if (terms.residual != nullptr) value = hn::Add(value, hn::LoadU(d, terms.residual + i));
    hn::StoreU(value, d, sum + i);
  }
  for (; i < terms.count; ++i) {
    const float biased = terms.bias == nullptr ? terms.x[i] : terms.x[i] + terms.bias[i];
    const float value = biased * scale;
    sum[i] = terms.residual == nullptr ? value : value + terms.residual[i];
  }
}

// One vector. What is added to bias_sums doesn't depend on whether dx is there: the compiler has no
// product and sum to make one of.
template <bool kHasMask, class D>
HWY_INLINE void DropGradientStep(D d, const uint8_t* mask, float scale, const float* ds, int64_t i,
                                 float* dx, float* bias_sums) {
  const hn::RebindToSigned<D> d_ints;
  const hn::Rebind<uint8_t, D> d_bytes;
  const auto scales = hn::Set(d, scale);
  const auto gradient = hn::LoadU(d, ds + i);
  auto value = hn::Mul(gradient, scales);
  if (kHasMask) {
    const auto kept = hn::PromoteTo(d_ints, hn::LoadU(d_bytes, mask + i));
    value = hn::IfThenZeroElse(hn::RebindMask(d, hn::Eq(kept, hn::Zero(d_ints))), value);
  }
  if (dx != nullptr) hn::StoreU(value, d, dx + i);
  if (bias_sums == nullptr) return;
  const auto sums = hn::LoadU(d, bias_sums + i);
  hn::StoreU(kHasMask ? hn::Add(sums, value) : hn::MulAdd(gradient, scales, sums), d,
             bias_sums + i);
}

template <bool kHasMask>
HWY_INLINE void DropGradientWith(const uint8_t* mask, float scale, const float* ds, int64_t count,
                                 float* dx, float* bias_sums) {
  const Floats d;
  const hn::CappedTag<float, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    DropGradientStep<kHasMask>(d, mask, scale, ds, i, dx, bias_sums);
  }
  for (; i < count; ++i) DropGradientStep<kHasMask>(one, mask, scale, ds, i, dx, bias_sums);
}

void DropGradient(const uint8_t* mask, float scale, const float* ds, int64_t count, float* dx,
                  float* bias_sums) {
  if (mask != nullptr) {
    DropGradientWith<true>(mask, scale, ds, count, dx, bias_sums);
  } else {
    DropGradientWith<false>(mask, scale, ds, count, dx, bias_sums);
  }
}

}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(AddByWords);
HWY_EXPORT(AddScaled);
HWY_EXPORT(DropGradient);

void AddByWordsOf(const RowTerms<float>& terms, const uint32_t* words,
                  const ElementDropout& dropout, float* sum, uint8_t* mask) {
  HWY_DYNAMIC_DISPATCH(AddByWords)
  (terms, words, dropout.threshold, static_cast<float>(dropout.scale), sum, mask);
}

// The double of AddByWords.
void AddByWordsOf(const RowTerms<double>& terms, const uint32_t* words,
                  const ElementDropout& dropout, double* sum, uint8_t* mask) {
  for (int64_t i = 0; i < terms.count; ++i) {
    const bool kept = words[i] >= dropout.threshold;
    const double biased = terms.bias == nullptr ? terms.x[i] : terms.x[i] + terms.bias[i];
    const double value = kept ? biased * dropout.scale : 0.0;
    sum[i] = terms.residual == nullptr ? value : value + terms.residual[i];
    if (mask != nullptr) mask[i] = kept ? 1 : 0;
  }
}

void AddScaledOf(const RowTerms<float>& terms, double scale, float* sum) {
  HWY_DYNAMIC_DISPATCH(AddScaled)(terms, static_cast<float>(scale), sum);
}

void AddScaledOf(const RowTerms<double>& terms, double scale, double* sum) {
  for (int64_t i = 0; i < terms.count; ++i) {
    const double biased = terms.bias == nullptr ? terms.x[i] : terms.x[i] + terms.bias[i];
    sum[i] = biased * scale + (terms.residual == nullptr ? 0.0 : terms.residual[i]);
  }
}

// Elements [begin, begin + count) of the row.
template <typename T>
RowTerms<T> SliceOf(const RowTerms<T>& terms, int64_t begin, int64_t count) {
  const auto from = [begin](const T* data) { return data == nullptr ? data : data + begin; };
  return {terms.x + begin, from(terms.bias), from(terms.residual), terms.first + begin, count};
}

template <typename T>
void AddDrawnRow(const RowTerms<T>& terms, const ElementDropout& dropout, T* sum, uint8_t* mask) {
  // Few enough words to stay in the first-level cache.
  constexpr int64_t kBatch = 1024;
  constexpr int64_t kWordsOfBlock = 4;
  uint32_t words[kBatch + 2 * kWordsOfBlock];
  for (int64_t done = 0; done < terms.count; done += kBatch) {
    const int64_t count = std::min(kBatch, terms.count - done);
    const int64_t first = terms.first + done;
    const int64_t skipped = first % kWordsOfBlock;
    PhiloxWords(dropout.key, static_cast<uint64_t>(first / kWordsOfBlock),
                (skipped + count + kWordsOfBlock - 1) / kWordsOfBlock, words);
    AddByWordsOf(SliceOf(terms, done, count), words + skipped, dropout, sum + done,
                 mask == nullptr ? nullptr : mask + done);
  }
}

}  // namespace

template <typename T>
void AddDroppedRow(const RowTerms<T>& terms, const ElementDropout& dropout, T* sum, uint8_t* mask) {
  if (dropout.draws) return AddDrawnRow(terms, dropout, sum, mask);
  if (mask != nullptr)
    std::memset(mask, dropout.drops_all ? 0 : 1, static_cast<size_t>(terms.count));
  if (!dropout.drops_all) return AddScaledOf(terms, dropout.scale, sum);
  for (int64_t i = 0; i < terms.count; ++i) {
    sum[i] = terms.residual == nullptr ? T{0} : terms.residual[i];
  }
}

template <typename T>
void DropGradientRow(const uint8_t* mask, T scale, const T* ds, int64_t count, T* dx,
                     T* bias_sums) {
  if constexpr (std::is_same_v<T, float>) {
    HWY_DYNAMIC_DISPATCH(DropGradient)(mask, scale, ds, count, dx, bias_sums);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const T value = mask != nullptr && mask[i] == 0 ? T{0} : ds[i] * scale;
      if (dx != nullptr) dx[i] = value;
      if (bias_sums != nullptr) bias_sums[i] += value;
    }
  }
}

template void AddDroppedRow(const RowTerms<float>&, const ElementDropout&, float*, uint8_t*);
template void AddDroppedRow(const RowTerms<double>&, const ElementDropout&, double*, uint8_t*);
template void DropGradientRow(const uint8_t*, float, const float*, int64_t, float*, float*);
template void DropGradientRow(const uint8_t*, double, const double*, int64_t, double*, double*);

}  // namespace skiff
#endif
