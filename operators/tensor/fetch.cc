// fetch: column `col` of the fetched tensors = X.
//
// Source: Fluid's program format, in which a saved program ends with one fetch op per output. The
// executor resolves the columns when it binds fetches and runs no kernel. The kernel here is for
// callers that run a program op by op.
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {

void RegisterFetch(OpRegistry& registry) {
  OpDef def;
  def.type = "fetch";
  def.doc = "Hands X to the caller as column `col` of the fetched tensors.";
  def.inputs = {{.name = "X", .doc = "The tensor to fetch."}};
  def.outputs = {{.name = "Out", .doc = "The list of all fetched tensors."}};
  def.attrs = {{.name = "col", .type = AttrType::kInt, .doc = "Position among the fetches."}};
  // Out is a list that several fetch ops write, not a tensor with a shape.
  def.infer = [](OpContext&) {};
  def.precision = Precision::kNone;
  def.no_gradient_reason = "a fetch leaves the program";
  def.kernel_dtype_slot = "X";
  def.has_side_effect = true;
  def.is_on_host = true;
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "fetch", CopyFactory("X", "Out"));
}

}  // namespace skiff
