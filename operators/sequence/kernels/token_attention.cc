#include "operators/sequence/kernels/token_attention.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "operators/sequence/kernels/used_functions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/sequence/kernels/token_attention.cc"
#include "hwy/foreach_target.h"
#include "operators/common/cpu/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

template <typename T>
using OneLane = hn::CappedTag<T, 1>;
// float64, which is there to check float32, goes number by number.
template <typename T>
using Tag = std::conditional_t<std::is_same_v<T, float>, hn::ScalableTag<float>, OneLane<double>>;

template <class D, class V = hn::Vec<D>>
HWY_INLINE V TanhEach(D d, V x) {
  if constexpr (std::is_same_v<hn::TFromD<D>, double>) {
    return hn::Set(d, std::tanh(hn::GetLane(x)));
  } else {
    return QuickTanh(d, x);
  }
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpOfNegativeEach(D d, V x) {
  if constexpr (std::is_same_v<hn::TFromD<D>, double>) {
    return hn::Set(d, std::exp(hn::GetLane(x)));
  } else {
    return ExpOfNegative(d, x);
  }
}

// The vectors that a loop over columns treats at a time: as many as hide the latency of a sum.
constexpr int64_t kVectors = 4;

// Calls body(d, i, vectors) for parts of [0, count): first kVectors vectors from i on, then one,
// then one number. `vectors` is an integral constant.
template <typename T, typename Body>
HWY_INLINE void ForEachPart(int64_t count, const Body& body) {
  const Tag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + kVectors * lanes <= count; i += kVectors * lanes)
    body(d, i, std::integral_constant<int64_t, kVectors>());
  for (; i + lanes <= count; i += lanes) body(d, i, std::integral_constant<int64_t, 1>());
  for (; i < count; ++i) body(OneLane<T>(), i, std::integral_constant<int64_t, 1>());
}

// Returns the sum of term(d, i) over [0, count), where term returns a vector of the numbers from i
// on.
template <typename T, typename Term>
HWY_INLINE T SumOf(int64_t count, const Term& term) {
  const Tag<T> d;
  const OneLane<T> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<Tag<T>> sums[kVectors];
  for (auto& sum : sums) sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + kVectors * lanes <= count; i += kVectors * lanes) {
    for (int64_t k = 0; k < kVectors; ++k) sums[k] = hn::Add(sums[k], term(d, i + k * lanes));
  }
  for (; i + lanes <= count; i += lanes) sums[0] = hn::Add(sums[0], term(d, i));
  const auto sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  T rest = 0;
  for (; i < count; ++i) rest += hn::GetLane(term(one, i));
  return hn::GetLane(hn::SumOfLanes(d, sum)) + rest;
}

template <typename T>
T Dot(const T* a, const T* b, int64_t count) {
  return SumOf<T>(
      count, [=](auto d, int64_t i) { return hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i)); });
}

// v · tanh(query + key)
template <typename T>
T AdditiveScore(const T* v, const T* query, const T* key, int64_t count) {
  return SumOf<T>(count, [=](auto d, int64_t i) {
    const auto mixed = TanhEach(d, hn::Add(hn::LoadU(d, query + i), hn::LoadU(d, key + i)));
    return hn::Mul(hn::LoadU(d, v + i), mixed);
  });
}

// to = Σ weights[s] * rows[s], for `count` rows of `width` numbers.
template <typename T>
void SumWeighted(const T* HWY_RESTRICT weights, const T* HWY_RESTRICT rows, int64_t count,
                 int64_t width, T* HWY_RESTRICT to) {
  ForEachPart<T>(width, [=](auto d, int64_t first, auto vectors) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    hn::Vec<decltype(d)> sums[vectors];
    for (auto& sum : sums) sum = hn::Zero(d);
    const T* row = rows + first;
    for (int64_t s = 0; s < count; ++s, row += width) {
      const auto weight = hn::Set(d, weights[s]);
      for (int64_t k = 0; k < vectors; ++k)
        sums[k] = hn::MulAdd(weight, hn::LoadU(d, row + k * lanes), sums[k]);
    }
    for (int64_t k = 0; k < vectors; ++k) hn::StoreU(sums[k], d, to + first + k * lanes);
  });
}

template <typename T>
void Softmax(T* x, int64_t count) {
  T max = x[0];
  for (int64_t i = 1; i < count; ++i) max = std::max(max, x[i]);
  const T sum = SumOf<T>(count, [=](auto d, int64_t i) {
    const auto power = ExpOfNegativeEach(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, max)));
    hn::StoreU(power, d, x + i);
    return power;
  });
  for (int64_t i = 0; i < count; ++i) x[i] /= sum;
}

template <typename T>
void AttendTo(const AttendedTokens<T>& seen, const T* query, T* weights, T* context) {
  const int64_t width = seen.key_width;
  for (int64_t s = 0; s < seen.tokens; ++s) {
    const T* key = seen.keys + s * width;
    weights[s] = seen.score_weight == nullptr ? Dot(query, key, width)
                                              : AdditiveScore(seen.score_weight, query, key, width);
  }
  if (seen.tokens > 0) Softmax(weights, seen.tokens);
  SumWeighted(weights, seen.encoded, seen.tokens, seen.width, context);
}

// The gradient of the scores.
template <typename T>
void ScoresBackward(const AttendedTokens<T>& seen, const T* weights,
                    const AttentionGradient<T>& gradient) {
  T* scores = gradient.scores;
  T mean = 0;
  for (int64_t s = 0; s < seen.tokens; ++s) {
    scores[s] = Dot(gradient.context, seen.encoded + s * seen.width, seen.width);
    if (gradient.weights != nullptr) scores[s] += gradient.weights[s];
    mean += weights[s] * scores[s];
  }
  for (int64_t s = 0; s < seen.tokens; ++s) scores[s] = weights[s] * (scores[s] - mean);
}

// Goes through all tokens for a few columns at a time, whose sums stay in registers.
template <typename T>
void AdditiveBackward(const AttendedTokens<T>& seen, const T* query,
                      const AttentionGradient<T>& gradient) {
  ForEachPart<T>(seen.key_width, [&](auto d, int64_t first, auto vectors) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto one = hn::Set(d, T{1});
    hn::Vec<decltype(d)> v[vectors], q[vectors], d_query[vectors], d_v[vectors];
    for (int64_t k = 0; k < vectors; ++k) {
      v[k] = hn::LoadU(d, seen.score_weight + first + k * lanes);
      q[k] = hn::LoadU(d, query + first + k * lanes);
      d_query[k] = d_v[k] = hn::Zero(d);
    }
    for (int64_t s = 0; s < seen.tokens; ++s) {
      const int64_t at = s * seen.key_width + first;
      const auto d_score = hn::Set(d, gradient.scores[s]);
      for (int64_t k = 0; k < vectors; ++k) {
        const auto mixed = TanhEach(d, hn::Add(q[k], hn::LoadU(d, seen.keys + at + k * lanes)));
        d_v[k] = hn::MulAdd(d_score, mixed, d_v[k]);
        // Fused, so that the bits don't depend on whether the gradient of the keys is wanted.
        const auto slope = hn::NegMulAdd(mixed, mixed, one);
        const auto factor = hn::Mul(d_score, v[k]);
        d_query[k] = hn::MulAdd(factor, slope, d_query[k]);
        if (gradient.keys == nullptr) continue;
        T* d_key = gradient.keys + at + k * lanes;
        hn::StoreU(hn::MulAdd(factor, slope, hn::LoadU(d, d_key)), d, d_key);
      }
    }
    for (int64_t k = 0; k < vectors; ++k) {
      hn::StoreU(d_query[k], d, gradient.query + first + k * lanes);
      if (gradient.score_weight == nullptr) continue;
      T* to = gradient.score_weight + first + k * lanes;
      hn::StoreU(hn::Add(hn::LoadU(d, to), d_v[k]), d, to);
    }
  });
}

// keys_gradient[s] += scores_gradient[s] * query
template <typename T>
void AddToKeys(const AttendedTokens<T>& seen, const T* HWY_RESTRICT query,
               const T* HWY_RESTRICT scores, T* HWY_RESTRICT keys) {
  for (int64_t s = 0; s < seen.tokens; ++s, keys += seen.key_width) {
    for (int64_t i = 0; i < seen.key_width; ++i) keys[i] += scores[s] * query[i];
  }
}

template <typename T>
void Backward(const AttendedTokens<T>& seen, const T* query, const T* weights,
              const AttentionGradient<T>& gradient) {
  ScoresBackward(seen, weights, gradient);
  if (seen.score_weight != nullptr) return AdditiveBackward(seen, query, gradient);
  SumWeighted<T>(gradient.scores, seen.keys, seen.tokens, seen.key_width, gradient.query);
  if (gradient.keys != nullptr) AddToKeys(seen, query, gradient.scores, gradient.keys);
}

template <typename T>
AttentionFunctions<T> AttentionFunctionsOf() {
  return {.forward = AttendTo<T>, .backward = Backward<T>};
}
auto Functions() {
  return std::pair(AttentionFunctionsOf<float>(), AttentionFunctionsOf<double>());
}

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
SKIFF_USED_FUNCTIONS(AttentionFunctions);
}  // namespace skiff
#endif
