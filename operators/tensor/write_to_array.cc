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
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/tensor_array_access.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  CheckArrayIndex(context);
  context.SetOutputLike("Out", "X");
}

template <typename T>
void Add(const Tensor& x, Tensor* sum) {
  for (int64_t i = 0; i < x.element_count(); ++i) sum->data<T>()[i] += x.data<T>()[i];
}

void AddTo(const Tensor& x, Tensor* sum) {
  SKIFF_ENFORCE(sum->shape() == x.shape() && sum->dtype() == x.dtype(), kInvalidArgument,
                "write_to_array: ", x.dtype(), " ", x.shape(), " would be added to ", sum->dtype(),
                " ", sum->shape());
  if (x.dtype() == DType::kFloat32) return Add<float>(x, sum);
  if (x.dtype() == DType::kFloat64) return Add<double>(x, sum);
  Throw(ErrorCode::kUnimplemented, "write_to_array: a sum of ", x.dtype(),
        ", expected float32 or float64");
}

std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel(
      [x = context.InputIndex("X"), i = context.InputIndex("I"), out = context.OutputIndex("Out"),
       adds = (context.op().role() & kRoleBackward) != 0](const KernelContext& run) {
        const Tensor& from = run.input(x);
        TensorArray& array = *run.output(out).array();
        const int64_t index = *run.input(i).data<int64_t>();
        if (adds && array.Find(index) != nullptr) return AddTo(from, &array.At(index));
        CopyBytes(from, array.Make(index, from.shape(), from.dtype(), from.lod()).raw_data());
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
                {.name = "I", .doc = "The index: one int64, at least 0.", .checks_data = true}};
  def.outputs = {{.name = "Out", .doc = "The array, which grows if need be.", .array = true}};
  def.infer = Infer;
  def.grad = Gradient;
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "write_to_array", Prepare);
}

}  // namespace skiff
