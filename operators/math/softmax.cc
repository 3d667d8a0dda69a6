// softmax: y_c = exp(x_c - max x) / sum_j exp(x_j - max x) along `axis`.
// Source: Fluid's softmax (Bridle 1990); dX = (dOut - sum_c dOut_c * y_c) * y.
#include "framework/op/arguments.h"
#include "operators/common/softmax_tiles.h"
#include "operators/math/kernels/softmax_definition.h"

namespace skiff {
namespace {

template <typename T>
void SoftmaxOfTile(const SoftmaxTile& tile, const T* x, T* y) {
  T max[SoftmaxTile::kMaxItems];
  T sum[SoftmaxTile::kMaxItems];
  // Three passes over a tile that stays in the core's cache. Subtracting the maximum keeps the
  // exponentials in [0, 1], and their sum at least 1.
  TileMax(tile, x, max);
  TileExp(tile, x, max, y, sum);
  for (int64_t i = 0; i < tile.items; ++i) sum[i] = 1 / sum[i];
  TileScale(tile, y, sum, y);
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const In<T> x(context, "X");
  const Out<T> out(context, "Out");
  const int axis = SoftmaxAxis(context, context.Input("X").shape);
  return MakeRowsKernel([=](const KernelContext& run) {
    const AxisExtents extents = ExtentsOfAxis(x.shape(run), axis);
    ForTiles(extents.outer, extents.length, extents.inner,
             [=, from = x(run), to = out(run)](const SoftmaxTile& tile) {
               SoftmaxOfTile(tile, from + tile.offset, to + tile.offset);
             });
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const In<T> out(context, "Out");
  const In<T> gradient(context, "Out@GRAD");
  const Out<T> dx(context, "X@GRAD");
  const int axis = SoftmaxAxis(context, context.Input("Out").shape);
  return MakeRowsKernel([=](const KernelContext& run) {
    const AxisExtents extents = ExtentsOfAxis(out.shape(run), axis);
    ForTiles(extents.outer, extents.length, extents.inner,
             [=, y = out(run), dy = gradient(run), to = dx(run)](const SoftmaxTile& tile) {
               T dot[SoftmaxTile::kMaxItems];
               TileDot(tile, y + tile.offset, dy + tile.offset, dot);
               TileSoftmaxGrad(tile, y + tile.offset, dy + tile.offset, dot, to + tile.offset);
             });
  });
}

}  // namespace

void RegisterSoftmax(OpRegistry& registry) {
  OpDef def = SoftmaxDef(
      "softmax", "Out = exp(X - max X) / sum of exp(X - max X) along `axis`. Fluid's softmax.",
      "Probabilities, of X's shape.");
  registry.Add(SoftmaxGradDef(
      &def, "The gradient of softmax: dX = (dOut - sum of dOut * Out along `axis`) * Out."));
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "softmax", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "softmax_grad", []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
