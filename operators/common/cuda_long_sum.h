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

}  // namespace skiff
