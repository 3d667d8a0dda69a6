// log_softmax: y_c = x_c - max x - log(sum_j exp(x_j - max x)) along `axis`.
// Source: Fluid's log_softmax; dX = dOut - exp(y) * sum_c dOut_c.
#include <cmath>

#include "operators/math/kernels/softmax_kernels.h"

namespace skiff {
namespace {

struct LogSoftmaxFormula {
  template <typename T>
  static void Value(const SoftmaxTile& tile, const T* x, T* out) {
    T max[SoftmaxTile::kMaxItems];
    T sum[SoftmaxTile::kMaxItems];
    // The exponentials are only summed, not stored. log(sum) is exact enough, as the sum is at
    // least 1.
    TileMax(tile, x, max);
    TileExp(tile, x, max, static_cast<T*>(nullptr), sum);
    for (int64_t i = 0; i < tile.items; ++i) sum[i] = std::log(sum[i]);
    TileSubtract(tile, x, max, sum, out);
  }

  template <typename T>
  static void Gradient(const SoftmaxTile& tile, const T* out, const T* dout, T* dx) {
    T sum[SoftmaxTile::kMaxItems];
    TileSum(tile, dout, sum);
    TileLogSoftmaxGrad(tile, out, dout, sum, dx);
  }
};

}  // namespace

void RegisterLogSoftmax(OpRegistry& registry) {
  AddSoftmax<LogSoftmaxFormula>(
      registry,
      SoftmaxDef("log_softmax",
                 "Out = X - max X - log(sum of exp(X - max X)) along `axis`. Fluid's log_softmax.",
                 "Logarithms of probabilities, of X's shape."),
      "The gradient of log_softmax: dX = dOut - exp(Out) * sum of dOut along `axis`.");
}

}  // namespace skiff
