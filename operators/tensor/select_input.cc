// select_input: Out = X[Mask], the result of the branch that has run.
//
// Source: Fluid's select_input. Its gradient is select_output.
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/selected_tensor.h"

namespace skiff {
namespace {

std::vector<Op> SelectInputGradient(const GradContext& context) {
  Op grad("select_output");
  grad.SetInput("X", context.OutputGrad("Out")).SetInput("Mask", context.Input("Mask"));
  grad.SetOutput("Out", context.InputGrad("X"));
  return {std::move(grad)};
}

}  // namespace

void RegisterSelectInput(OpRegistry& registry) {
  OpDef def;
  def.type = "select_input";
  def.doc = "Out = X[Mask].";
  def.inputs = {{.name = "X", .doc = "Tensors of one shape and dtype.", .duplicable = true},
                MaskSlot("The index of one of X: one int32.")};
  def.outputs = {{.name = "Out", .doc = "A copy of that one."}};
  def.infer = [](OpContext& context) {
    CheckMask(context);
    const TensorMeta& first = context.Input("X");
    for (size_t i = 1; i < context.InputCount("X"); ++i) {
      const TensorMeta& other = context.Input("X", i);
      SKIFF_ENFORCE(other.dtype == first.dtype && Agree(other.shape, first.shape), kInvalidArgument,
                    "select_input: X[", i, "] is ", other.dtype, " ", other.shape, " and X[0] is ",
                    first.dtype, " ", first.shape, ": expected one shape and dtype");
    }
    context.SetOutputLike("Out", "X");
  };
  def.precision = Precision::kFollow;
  def.grad = SelectInputGradient;
  def.kernel_dtype_slot = "Out";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "select_input", [](PrepareContext& context) {
    const int first = context.InputIndex("X");
    const auto count = static_cast<int64_t>(context.InputCount("X"));
    const In<> mask(context, "Mask");
    const Out<> out(context, "Out");
    return MakeRowsKernel([=](const KernelContext& run) {
      const int64_t chosen = ChosenIndex("select_input", mask.tensor(run), count);
      const Tensor& x = run.input(first + static_cast<int>(chosen));
      MemoryMoverOf(run).CopyBytes(run, x.raw_data(), out(run), x.byte_count());
    });
  });
}

}  // namespace skiff
