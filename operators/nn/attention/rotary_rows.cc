#include "operators/nn/attention/rotary_rows.h"

#include <tuple>
#include <type_traits>

#include "operators/common/cpu/float_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/nn/attention/rotary_rows.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "operators/common/cpu/half_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skiff::HWY_NAMESPACE {
namespace {

// Turns the pairs of columns (first[i], second[i]) for the lanes i of d. The sums are those of
// TurnInterleaved, so each pair gets the same bits in a vector of any length.
template <class D, typename T>
HWY_INLINE void TurnPairs(D d, const T* first, const T* second, const float* cosines,
                          const float* sines, T* to_first, T* to_second) {
  const auto a = LoadWide(d, first);
  const auto b = LoadWide(d, second);
  const auto cosine = hn::LoadU(d, cosines);
  const auto sine = hn::LoadU(d, sines);
  StoreRounded(hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), d, to_first);
  StoreRounded(hn::MulAdd(a, sine, hn::Mul(b, cosine)), d, to_second);
}

// Turns the pairs of a head from `i` on, as far as vectors of d go. Returns where they end.
template <class D, typename T>
HWY_INLINE int64_t TurnHalves(D d, const T* x, const RotaryTurn<float>& turn, int64_t pairs,
                              int64_t i, T* to) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; i + lanes <= pairs; i += lanes) {
    TurnPairs(d, x + i, x + pairs + i, turn.cosines + i, turn.sines + i, to + i, to + pairs + i);
  }
  return i;
}

#if HWY_TARGET != HWY_SCALAR
// The same for interleaved pairs; `i` is a column, and so is what it returns.
template <class D, typename T>
HWY_INLINE int64_t TurnInterleaved(D d, const T* x, const RotaryTurn<float>& turn, int64_t pairs,
                                   int64_t i, T* to) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; i + lanes <= 2 * pairs; i += lanes) {
    const auto columns = LoadWide(d, x + i);
    const auto products = hn::Mul(columns, hn::LoadU(d, turn.cosines + i));
    const auto others = hn::Shuffle2301(columns);
    StoreRounded(hn::MulAdd(others, hn::LoadU(d, turn.sines + i), products), d, to + i);
  }
  return i;
}
#endif

template <typename T>
void TurnRow(const RotaryColumns& columns, const T* x, const RotaryTurn<float>& numbers, T* to) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 4> few;
  const hn::CappedTag<float, 1> one;
  // A copy, which no store can change.
  const RotaryTurn<float> turn = numbers;
  const int64_t pairs = columns.pairs;
  const int64_t heads = columns.heads;
  if (columns.is_interleaved) {
    for (int64_t head = 0; head < heads; ++head, x += 2 * pairs, to += 2 * pairs) {
      int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
      i = TurnInterleaved(d, x, turn, pairs, i, to);
      i = TurnInterleaved(few, x, turn, pairs, i, to);
#endif
      for (; i < 2 * pairs; i += 2) {
        TurnPairs(one, x + i, x + i + 1, turn.cosines + i, turn.sines + i + 1, to + i, to + i + 1);
      }
    }
  } else {
    for (int64_t head = 0; head < heads; ++head, x += 2 * pairs, to += 2 * pairs) {
      int64_t i = TurnHalves(d, x, turn, pairs, 0, to);
      i = TurnHalves(few, x, turn, pairs, i, to);
      TurnHalves(one, x, turn, pairs, i, to);
    }
  }
}

FloatLoops<TurnRotaryRow> Rows() { return {TurnRow<float>, TurnRow<Float16>, TurnRow<BFloat16>}; }

}  // namespace
}  // namespace skiff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skiff {
namespace {

HWY_EXPORT(Rows);

void TurnRowOfDoubles(const RotaryColumns& columns, const double* x, const RotaryTurn<double>& turn,
                      double* to) {
  for (int64_t head = 0; head < columns.heads; ++head) {
    for (int64_t i = 0; i < columns.pairs; ++i) {
      const RotaryPair pair = columns.PairAt(head, i);
      const double first = x[pair.first];
      const double second = x[pair.second];
      const double cosine = turn.cosines[columns.is_interleaved ? 2 * i : i];
      const double sine = turn.sines[columns.is_interleaved ? 2 * i + 1 : i];
      to[pair.first] = first * cosine - second * sine;
      to[pair.second] = second * cosine + first * sine;
    }
  }
}

}  // namespace

template <typename T>
TurnRotaryRow<T> TurnRotaryRowOf() {
  if constexpr (std::is_same_v<T, double>) {
    return TurnRowOfDoubles;
  } else {
    return std::get<TurnRotaryRow<T>>(HWY_DYNAMIC_DISPATCH(Rows)());
  }
}

template TurnRotaryRow<float> TurnRotaryRowOf<float>();
template TurnRotaryRow<double> TurnRotaryRowOf<double>();
template TurnRotaryRow<Float16> TurnRotaryRowOf<Float16>();
template TurnRotaryRow<BFloat16> TurnRotaryRowOf<BFloat16>();

}  // namespace skiff
#endif
