// rnn_memory_helper: Out = X, a copy of a state or an output of a recurrent op's block.
//
// Source: Fluid's rnn_memory_helper, which its StaticRNN puts between what a block computes and the
// names by which recurrent knows it, so that each has a gradient of its own.
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {

void RegisterRnnMemoryHelper(OpRegistry& registry) {
  OpDef def;
  def.type = "rnn_memory_helper";
  def.doc = "Out[i] = X[i].";
  def.inputs = {{.name = "X", .doc = "Any tensor."}};
  def.outputs = {{.name = "Out", .doc = "A copy of X."}};
  def.attrs = {{.name = "dtype",
                .type = AttrType::kInt,
                .default_value = int32_t{5},
                .doc = "The dtype of X; nothing depends on it."}};
  def.infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
  def.precision = Precision::kFollow;
  def.in_place = {{"X", "Out"}};
  def.views = {{"X", "Out"}};
  def.zero_preserving = true;
  def.elementwise = true;
  OpDef grad = GradientOf(&def, {ForShape("X"), Optional(ForShape("Out")), "Out@GRAD"}, {"X@GRAD"});
  grad.doc = "X@GRAD = Out@GRAD.";
  grad.in_place = {{"Out@GRAD", "X@GRAD"}};
  grad.views = {{"Out@GRAD", "X@GRAD"}};
  grad.elementwise = true;
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "rnn_memory_helper", CopyFactory("X", "Out"));
  registry.Add(std::move(grad));
  AddKernelsForAllDTypes(registry, "rnn_memory_helper_grad", CopyFactory("Out@GRAD", "X@GRAD"));
}

}  // namespace skiff
