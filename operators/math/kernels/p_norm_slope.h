// The gradient of p_norm for any p, on CPU and CUDA.
#pragma once

#include <cmath>
#include <limits>

namespace skiff {

// The gradient of the elements of a line: gradient · sign(x) · |x|^(p - 1) / (norm^(p - 1) +
// epsilon), where `gradient` is that of the line's norm. D is double. It is a template because
// devices call constexpr functions, and no other constexpr function may call std::pow.
template <typename D>
struct PNormSlope {
  PNormSlope() = default;
  constexpr PNormSlope(D norm, D gradient, D order, D epsilon) {
    const D divisor = std::pow(norm, order - 1) + epsilon;
    // Where powers are out of range, powers of ratios aren't, and epsilon is negligible (or 0).
    const bool is_lost = divisor < std::numeric_limits<D>::min() || divisor - divisor != D{0};
    unit = is_lost ? norm : D{1};
    factor = is_lost ? gradient : gradient / divisor;
  }

  constexpr D operator()(D x, D order) const {
    // Below p = 1, a power of 0 is infinite, and the sign of 0 would turn it into NaN.
    if (x == D{0}) return 0;
    const D slope = std::pow((x < D{0} ? -x : x) / unit, order - 1) * factor;
    return x < D{0} ? -slope : slope;
  }

  D unit = 1;    // what elements are divided by
  D factor = 0;  // of their powers
};

}  // namespace skiff
