// write_to_array: element I of Out becomes X.
//
// Source: Fluid's write_to_array. Its gradient is read_from_array.
//
// With the role Backward, Out is an array of gradients, and the op adds X to the element if Out has
// it.
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "framework/tensor/tensor_array.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/tensor_array_access.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  CheckArrayIndex(context);
  context.SetOutputLike("Out", "X");
}

void AddTo(const KernelContext& run, const Tensor& x, Tensor* sum) {
  SKIFF_ENFORCE(sum->shape() == x.shape() && sum->dtype() == x.dtype(), kInvalidArgument,
                "write_to_array: ", x.dtype(), " ", x.shape(), " would be added to ", sum->dtype(),
                " ", sum->shape());
  CheckCanBeAdded("write_to_array", x.dtype());
  const MemoryRun all{.from = x.raw_data(), .to = sum->raw_data(), .bytes = x.byte_count()};
  MemoryMoverOf(run).AddRuns(run, x.dtype(), {&all, 1});
}

std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel(
      [x = In<>(context, "X"), i = In<int64_t>(context, "I"), out = Out<>(context, "Out"),
       adds = (context.op().role() & kRoleBackward) != 0](const KernelContext& run) {
        const Tensor& from = x.tensor(run);
        TensorArray& array = *out.tensor(run).array();
        const int64_t index = *i(run);
        if (adds && array.Find(index) != nullptr) return AddTo(run, from, &array.At(index));
        Tensor& element = array.Make(index, from.shape(), from.dtype(), from.lod());
        MemoryMoverOf(run).CopyBytes(run, from.raw_data(), element.raw_data(), from.byte_count());
      });
}

std::vector<Op> Gradient(const GradContext& context) {
  Op grad("read_from_array");
  grad.SetInput("X", context.OutputGrad("Out"));
  grad.SetInput("I", context.Input("I"));
  grad.SetInput("X_W", context.Input("X"));
  grad.SetOutput("Out", context.InputGrad("X"));
  return {std::move(grad)};
}

}  // namespace

void RegisterWriteToArray(OpRegistry& registry) {
  OpDef def;
  def.type = "write_to_array";
  def.doc = "Makes a copy of X element I of an array.";
  def.inputs = {{.name = "X", .doc = "Any dense tensor."},
                {.name = "I",
                 .doc = "The index: one int64, at least 0.",
                 .checks_data = true,
                 .on_host = true}};
  def.outputs = {{.name = "Out", .doc = "The array, which grows if need be.", .array = true}};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.grad = Gradient;
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "write_to_array", Prepare);
}

}  // namespace skiff
