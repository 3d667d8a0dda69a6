// diag: Out[i, i] = Diagonal[i], 0 elsewhere.
//
// Source: diag of Fluid 1.x (gone in PaddlePaddle 2.6, which has diag_v2). It has no gradient
// there.
#include <array>

#include "framework/base/error.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/data_mover.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {
namespace {

std::unique_ptr<Kernel> PrepareDiag(PrepareContext& context) {
  const TensorMeta& diagonal = context.Input("Diagonal");
  const std::array<int64_t, 1> from = {1};
  // A step along the diagonal is one row and one column.
  const std::array<int64_t, 1> to = {diagonal.shape[0] + 1};
  return MakeKernel([copy = StridedCopy(diagonal.shape.dims(), from, to, SizeOf(diagonal.dtype)),
                     x = In<>(context, "Diagonal"),
                     out = Out<>(context, "Out")](const KernelContext& run) {
    const DataMover& mover = MoverOf(run);
    MemoryMoverOf(run).ZeroBytes(run, out(run), out.tensor(run).byte_count());
    mover.Copy(run, copy, x(run), out(run));
  });
}

}  // namespace

void RegisterDiag(OpRegistry& registry) {
  OpDef def;
  def.type = "diag";
  def.doc = "Out[i, i] = Diagonal[i], 0 elsewhere.";
  def.inputs = {{.name = "Diagonal", .doc = "A vector."}};
  def.outputs = {{.name = "Out", .doc = "A square matrix."}};
  def.infer = [](OpContext& context) {
    const TensorMeta& diagonal = context.Input("Diagonal");
    SKIFF_ENFORCE(diagonal.shape.rank() == 1, kInvalidArgument, "diag: Diagonal has shape ",
                  diagonal.shape, ", expected a vector");
    context.SetOutput("Out", {diagonal.shape[0], diagonal.shape[0]}, diagonal.dtype);
  };
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "Fluid's diag has none; diag_v2 does";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "diag", PrepareDiag);
}

}  // namespace skiff
