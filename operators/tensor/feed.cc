// feed: Out = the tensor that the caller feeds in column `col`.
//
// Source: Fluid's program format, in which a saved program begins with one feed op per input. The
// executor resolves the columns when it binds feeds and runs no kernel. The kernel here is for
// callers that run a program op by op and hold the fed tensor in X.
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {

void RegisterFeed(OpRegistry& registry) {
  OpDef def;
  def.type = "feed";
  def.doc = "Out is the tensor fed in column `col`, with the shape that the program declares.";
  def.inputs = {{.name = "X", .doc = "The holder of all fed tensors."}};
  def.outputs = {{.name = "Out", .doc = "The fed tensor."}};
  def.attrs = {{.name = "col", .type = AttrType::kInt, .doc = "Position among the feeds."}};
  // Out keeps the declared shape, since X is not a tensor.
  def.infer = [](OpContext&) {};
  def.precision = Precision::kNone;
  def.no_gradient_reason = "a feed comes from outside the program";
  def.kernel_dtype_slot = "Out";
  def.has_side_effect = true;
  def.is_on_host = true;
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "feed", CopyFactory("X", "Out"));
}

}  // namespace skiff
