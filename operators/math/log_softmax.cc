// log_softmax: y_c = x_c - max x - log(sum_j exp(x_j - max x)) along `axis`.
// Source: Fluid's log_softmax; dX = dOut - exp(y) * sum_c dOut_c.
#include <cmath>

#include "framework/op/arguments.h"
#include "operators/common/softmax_tiles.h"
#include "operators/math/kernels/softmax_definition.h"

namespace skiff {
namespace {

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const In<T> x(context, "X");
  const Out<T> out(context, "Out");
  const int axis = SoftmaxAxis(context, context.Input("X").shape);
  return MakeRowsKernel([=](const KernelContext& run) {
    const AxisExtents extents = ExtentsOfAxis(x.shape(run), axis);
    const T* from = x(run);
    T* to = out(run);
    ForTiles(extents.outer, extents.length, extents.inner, [=](const SoftmaxTile& tile) {
      T max[SoftmaxTile::kMaxItems];
      T sum[SoftmaxTile::kMaxItems];
      // The exponentials are only summed, not stored. log(sum) is exact enough, as the sum is at
      // least 1.
      TileMax(tile, from + tile.offset, max);
      TileExp(tile, from + tile.offset, max, static_cast<T*>(nullptr), sum);
      for (int64_t i = 0; i < tile.items; ++i) sum[i] = std::log(sum[i]);
      TileSubtract(tile, from + tile.offset, max, sum, to + tile.offset);
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
               T sum[SoftmaxTile::kMaxItems];
               TileSum(tile, dy + tile.offset, sum);
               TileLogSoftmaxGrad(tile, y + tile.offset, dy + tile.offset, sum, to + tile.offset);
             });
  });
}

}  // namespace

void RegisterLogSoftmax(OpRegistry& registry) {
  OpDef def =
      SoftmaxDef("log_softmax",
                 "Out = X - max X - log(sum of exp(X - max X)) along `axis`. Fluid's log_softmax.",
                 "Logarithms of probabilities, of X's shape.");
  registry.Add(SoftmaxGradDef(
      &def, "The gradient of log_softmax: dX = dOut - exp(Out) * sum of dOut along `axis`."));
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "log_softmax", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double>(
      "log_softmax_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
