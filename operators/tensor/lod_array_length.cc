// lod_array_length: the number of elements of an array.
//
// Source: Fluid's lod_array_length.
#include "framework/op/registry.h"
#include "framework/tensor/tensor_array.h"
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {

void RegisterLodArrayLength(OpRegistry& registry) {
  OpDef def;
  def.type = "lod_array_length";
  def.doc = "The largest index that has an element, plus 1.";
  def.inputs = {{.name = "X", .doc = "The array.", .array = true}};
  def.outputs = {{.name = "Out", .doc = "int64 [1]."}};
  def.infer = [](OpContext& context) { context.SetOutput("Out", Shape({1}), DType::kInt64); };
  // An array of half can't be cast.
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "the result is an integer";
  def.is_on_host = true;
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "lod_array_length", [](PrepareContext& context) {
    return MakeRowsKernel(
        [x = In<>(context, "X"), out = Out<int64_t>(context, "Out")](const KernelContext& run) {
          *out(run) = x.tensor(run).array()->size();
        });
  });
}

}  // namespace skiff
