// loop_boundary: stands in the plan of a loop's body between the forward half and the gradient half
// while plan passes run, so that no instruction moves from one half to the other. Only lowering
// makes it and takes it away; it never runs. An op of Skiff's own.
#include "framework/op/registry.h"

namespace skiff {

void RegisterLoopBoundary(OpRegistry& registry) {
  OpDef def;
  def.type = "loop_boundary";
  def.doc = "Ends the forward half of a loop's body, in plans only.";
  def.inputs = {{.name = "X",
                 .doc = "What the forward half leaves.",
                 .duplicable = true,
                 .dispensable = true,
                 .selected_rows = true}};
  def.infer = [](OpContext&) {};
  def.precision = Precision::kNone;
  def.no_gradient_reason = "it is no part of a program";
  def.has_side_effect = true;
  def.is_on_host = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<float>("loop_boundary", []<typename T>(PrepareContext&) {
    return MakeKernel([](const KernelContext&) {});
  });
}

}  // namespace skiff
