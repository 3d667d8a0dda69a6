// The CPU kernels of softmax and log_softmax.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "framework/op/registry.h"
#include "operators/common/axis_extents.h"
#include "operators/common/cpu/softmax_tiles.h"
#include "operators/math/kernels/softmax_definition.h"

namespace skiff {

// Returns the kernel of the op or of its gradient op, which calls body(tile, data...) for each tile
// along `axis`. The data are those of the arguments at the tile's offset. The first argument is an
// input of X's shape.
template <class Body, class First, class... Rest>
std::unique_ptr<Kernel> MakeTilesKernel(int axis, const Body& body, const First& first,
                                        const Rest&... rest) {
  return MakeRowsKernel([=](const KernelContext& run) {
    const AxisExtents extents = ExtentsOfAxis(first.shape(run), axis);
    ForTiles(extents.outer, extents.length, extents.inner,
             [body, ... data = rest(run), from = first(run)](const SoftmaxTile& tile) {
               body(tile, from + tile.offset, (data + tile.offset)...);
             });
  });
}

// Adds an op (SoftmaxDef), the gradient op and the CPU kernels. Formula::Value(tile, x, out) and
// Formula::Gradient(tile, out, dout, dx) compute a tile.
template <class Formula>
void AddSoftmax(OpRegistry& registry, OpDef def, StaticText grad_doc) {
  const std::string type(def.type);
  registry.Add(SoftmaxGradDef(&def, grad_doc));
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(type, []<typename T>(PrepareContext& context) {
    return MakeTilesKernel(SoftmaxAxis(context, context.Input("X").shape),
                           Formula::template Value<T>, In<T>(context, "X"), Out<T>(context, "Out"));
  });
  registry.AddCpuKernels<float, double>(type + "_grad", []<typename T>(PrepareContext& context) {
    return MakeTilesKernel(SoftmaxAxis(context, context.Input("Out").shape),
                           Formula::template Gradient<T>, In<T>(context, "Out"),
                           In<T>(context, "Out@GRAD"), Out<T>(context, "X@GRAD"));
  });
}

}  // namespace skiff
