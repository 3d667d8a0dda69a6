// fill_zeros_like: Out = 0 in the shape of X.
//
// Source: Fluid's fill_zeros_like, which append_backward inserts where a gradient does not exist.
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {

void RegisterFillZerosLike(OpRegistry& registry) {
  OpDef def;
  def.type = "fill_zeros_like";
  def.doc = "Out[i] = 0, with the shape and dtype of X.";
  def.inputs = {{.name = "X", .doc = "Gives shape and dtype.", .shape_only = true}};
  def.outputs = {{.name = "Out", .doc = "Zeros."}};
  def.infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
  // Zeros are zeros in any dtype; Out has that of X, whose data the op doesn't read.
  def.precision = Precision::kNone;
  def.no_gradient_reason = "the output is a constant";
  def.in_place = {{"X", "Out"}};
  // Zeros are zeros in any layout, padding included.
  def.layout_rule = LayoutRule::kSame;
  def.layout_slots = {"X", "Out"};
  def.zero_preserving = true;
  def.elementwise = true;
  registry.Add(std::move(def));
  const KernelFactory prepare = [](PrepareContext& context) {
    const Out<> out(context, "Out");
    return MakeRowsKernel(
        [out](const KernelContext& run) { ZeroBytes(out(run), out.tensor(run).byte_count()); });
  };
  AddKernelsForAllDTypes(registry, "fill_zeros_like", prepare,
                         [](const OpContext&) { return true; });
}

}  // namespace skiff
