// select_output: Out[Mask] = X; all other outputs are 0.
//
// Source: Fluid's select_output, which leaves the others without a value. Its gradient is
// select_input.
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/selected_tensor.h"

namespace skiff {
namespace {

std::vector<Op> SelectOutputGradient(const GradContext& context) {
  Op grad("select_input");
  grad.SetInput("X", context.OutputGrad("Out")).SetInput("Mask", context.Input("Mask"));
  grad.SetOutput("Out", context.InputGrad("X"));
  return {std::move(grad)};
}

}  // namespace

void RegisterSelectOutput(OpRegistry& registry) {
  OpDef def;
  def.type = "select_output";
  def.doc = "Out[Mask] = X; all other outputs are 0.";
  def.inputs = {{.name = "X", .doc = "Any tensor."},
                MaskSlot("The index of one of the outputs: one int32.")};
  def.outputs = {{.name = "Out", .doc = "X or zeros.", .duplicable = true}};
  def.infer = [](OpContext& context) {
    CheckMask(context);
    for (size_t i = 0; i < context.OutputCount("Out"); ++i) context.SetOutputLike("Out", "X", i);
  };
  def.precision = Precision::kFollow;
  def.grad = SelectOutputGradient;
  def.kernel_dtype_slot = "X";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "select_output", [](PrepareContext& context) {
    const In<> x(context, "X");
    const In<> mask(context, "Mask");
    std::vector<Out<>> outputs;
    for (size_t i = 0; i < context.OutputCount("Out"); ++i) outputs.emplace_back(context, "Out", i);
    return MakeRowsKernel([=](const KernelContext& run) {
      const auto count = static_cast<int64_t>(outputs.size());
      const int64_t chosen = ChosenIndex("select_output", mask.tensor(run), count);
      for (int64_t i = 0; i < count; ++i) {
        const Out<>& output = outputs[static_cast<size_t>(i)];
        if (!output.is_there()) continue;
        Tensor& out = output.tensor(run);
        if (i == chosen) {
          MemoryMoverOf(run).CopyBytes(run, x(run), out.raw_data(), out.byte_count());
        } else {
          MemoryMoverOf(run).ZeroBytes(run, out.raw_data(), out.byte_count());
        }
      }
    });
  });
}

}  // namespace skiff
