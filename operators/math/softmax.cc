// softmax: y_c = exp(x_c - max x) / sum_j exp(x_j - max x) along `axis`.
// Source: Fluid's softmax (Bridle 1990); dX = (dOut - sum_c dOut_c * y_c) * y.
#include "operators/math/kernels/softmax_kernels.h"

namespace skiff {
namespace {

struct SoftmaxFormula {
  template <typename T>
  static void Value(const SoftmaxTile& tile, const T* x, T* out) {
    T max[SoftmaxTile::kMaxItems];
    T sum[SoftmaxTile::kMaxItems];
    // Three passes over a tile that stays in the core's cache. Subtracting the maximum keeps the
    // exponentials in [0, 1], and their sum at least 1.
    TileMax(tile, x, max);
    TileExp(tile, x, max, out, sum);
    for (int64_t i = 0; i < tile.items; ++i) sum[i] = 1 / sum[i];
    TileScale(tile, out, sum, out);
  }

  template <typename T>
  static void Gradient(const SoftmaxTile& tile, const T* out, const T* dout, T* dx) {
    T dot[SoftmaxTile::kMaxItems];
    TileDot(tile, out, dout, dot);
    TileSoftmaxGrad(tile, out, dout, dot, dx);
  }
};

}  // namespace

void RegisterSoftmax(OpRegistry& registry) {
  AddSoftmax<SoftmaxFormula>(
      registry,
      SoftmaxDef("softmax",
                 "Out = exp(X - max X) / sum of exp(X - max X) along `axis`. Fluid's softmax.",
                 "Probabilities, of X's shape."),
      "The gradient of softmax: dX = (dOut - sum of dOut * Out along `axis`) * Out.");
}

}  // namespace skiff
