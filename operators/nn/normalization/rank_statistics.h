// The statistics of a channel over the batches of all ranks, from the statistics that each rank has
// of its own batch. All sums are in the order of ranks, in float64: all ranks get the same bits.
#pragma once

#include <cstdint>

#include "operators/common/ranks/rank_gather.h"

namespace skiff {

// Of `count` values: the mean, and the sum of squared distances from it.
struct NormMoments {
  double count = 0;
  double mean = 0;
  double squares = 0;
};

// Of `count` values: the sums of g and of g · (x - mean), where g is the gradient of the output.
struct NormSums {
  double count = 0;
  double gradients = 0;
  double products = 0;
};

// Returns the moments of all values of a and b, of which b has some. Chan, Golub & LeVeque 1979:
// with d = mean_b - mean_a, the squares are squares_a + squares_b + d² · n_a n_b / (n_a + n_b).
// Unlike sums of squares, this doesn't cancel.
constexpr NormMoments UnionOf(const NormMoments& a, const NormMoments& b) {
  const double count = a.count + b.count;
  const double distance = b.mean - a.mean;
  return {count, a.mean + distance * b.count / count,
          a.squares + (b.squares + distance * distance * a.count * b.count / count)};
}

// Returns the moments of channel begin + i over all ranks. The moments of a rank without values
// aren't read.
constexpr NormMoments OverRanks(const GatheredItems<NormMoments>& part, int64_t i) {
  NormMoments all = part.Of(0, i);
  for (int32_t rank = 1; rank < part.ranks; ++rank) {
    const NormMoments& next = part.Of(rank, i);
    // The moments of a single rank keep their bits.
    if (next.count > 0) all = all.count > 0 ? UnionOf(all, next) : next;
  }
  return all;
}

constexpr NormSums OverRanks(const GatheredItems<NormSums>& part, int64_t i) {
  NormSums all = part.Of(0, i);
  for (int32_t rank = 1; rank < part.ranks; ++rank) {
    const NormSums& next = part.Of(rank, i);
    all = {all.count + next.count, all.gradients + next.gradients, all.products + next.products};
  }
  return all;
}

}  // namespace skiff
