// How products of matrices on a device whose sums are long are cut into parts. Includes none of
// CUDA's headers.
#pragma once

#include <algorithm>
#include <cstdint>

namespace skiff {

// The fewest terms that make a part worth a product of its own.
inline constexpr int64_t kLeastTermsOfAPart = 512;

// Products with few elements leave most of a large device idle. Returns into how many parts, which
// are products of their own, a caller had better cut the sums of such a product, at least 1.
inline int64_t WorthwhileSumParts(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kTile = 128;
  constexpr int64_t kTilesOfADevice = 256;
  const int64_t tiles = ((m + kTile - 1) / kTile) * ((n + kTile - 1) / kTile);
  if (tiles == 0) return 1;
  return std::max<int64_t>(std::min(kTilesOfADevice / tiles, k / kLeastTermsOfAPart), 1);
}

// Returns the divisor of `number` whose ratio to `wanted` is nearest to 1, among those of at most
// `most`; 1 if `most` is less. `number` and `wanted` are at least 1.
inline int64_t NearestDivisor(int64_t number, int64_t wanted, int64_t most) {
  most = std::min(most, number);
  int64_t lower = std::max<int64_t>(std::min(wanted, most), 1);
  while (number % lower != 0) --lower;
  const int64_t last = std::min(most, (wanted * wanted - 1) / lower);  // that is nearer
  for (int64_t higher = wanted + 1; higher <= last; ++higher) {
    if (number % higher == 0) return higher;
  }
  return lower;
}

// The memory for the parts of a product. Where fewer than two fit, it is large enough for a device
// as it is.
inline constexpr int64_t kMaxSumPartBytes = int64_t{16} << 20;

// Sums of k terms: `count` parts of `terms` each, and a last part with the terms that are left, if
// any.
struct LongSumCut {
  int64_t terms = 0;
  int64_t count = 1;  // 1: the sums aren't cut
  int64_t rest = 0;   // terms

  int64_t parts() const { return count + (rest > 0 ? 1 : 0); }

  friend bool operator==(const LongSumCut&, const LongSumCut&) = default;
};

// Returns how the sums of a product had better be cut, into at most `fitting` parts.
//
// It depends on nothing but its arguments, and the order of the sums depends on it.
//
// The last part is a product after the others. So it exists only if there is no number of equal
// parts near the worthwhile number.
inline LongSumCut CutOfLongSum(int64_t m, int64_t n, int64_t k, int64_t fitting) {
  // Terms of a part but the last: a multiple that lets the library load packs.
  constexpr int64_t kMultiple = 32;
  const LongSumCut whole{.terms = k};
  const int64_t wanted = std::min(WorthwhileSumParts(m, n, k), fitting);
  if (wanted < 2) return whole;
  if (k % kMultiple == 0) {
    const int64_t equal =
        NearestDivisor(k / kMultiple, wanted, std::min(fitting, k / kLeastTermsOfAPart));
    if (equal >= 2 && equal * 2 > wanted && equal < wanted * 2) {
      return {.terms = k / equal, .count = equal};
    }
  }
  // The fewest terms one after the other: of a part, and those that are left.
  LongSumCut best = whole;
  for (int64_t parts = wanted; parts >= 2; --parts) {
    const int64_t terms = k / parts / kMultiple * kMultiple;
    const LongSumCut cut{.terms = terms, .count = k / terms, .rest = k % terms};
    if (cut.parts() <= fitting && cut.terms + cut.rest < best.terms + best.rest) best = cut;
  }
  return best;
}

}  // namespace skiff
