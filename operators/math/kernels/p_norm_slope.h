// The gradient of p_norm for any p, on CPU and CUDA.
#pragma once

#include <cmath>

namespace skiff {

// Returns the derivative of a p-norm by its element x: sign(x) · |x|^(p - 1) / (norm^(p - 1) +
// epsilon), and 0 where x is 0. D is double: it's a template so that devices may call it.
template <typename D>
constexpr D PNormSlope(D x, D norm, D order, D epsilon) {
  // Below p = 1, a power of 0 is infinite, and the sign of 0 would turn it into NaN.
  if (x == D{0}) return 0;
  const D size = x < D{0} ? -x : x;
  const D divisor = std::pow(norm, order - 1) + epsilon;
  const D power = std::pow(size, order - 1);
  // Where powers are out of range, a ratio isn't, and epsilon is nothing beside them (or 0).
  const bool is_lost = divisor == D{0} || divisor - divisor != D{0};
  const D slope = is_lost ? std::pow(size / norm, order - 1) : power / divisor;
  return x < D{0} ? -slope : slope;
}

}  // namespace skiff
