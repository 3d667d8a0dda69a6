// read_from_array: Out is element I of X.
//
// Source: Fluid's read_from_array. Its gradient is write_to_array. As the gradient of
// write_to_array, with X_W, it reads an array of gradients: an element that is missing is 0, and
// one that is read is removed.
#include <algorithm>

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "framework/tensor/tensor_array.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/tensor_array_access.h"

namespace skiff {
namespace {

bool IsGradient(const Op& op) { return !op.Input("X_W").empty(); }

void Infer(OpContext& context) {
  CheckArrayIndex(context);
  if (context.HasInput("X_W")) return context.SetOutputLike("Out", "X_W");
  const TensorMeta& element = ElementMeta(context, "X");
  context.SetOutput("Out", element.shape, element.dtype);
  if (element.lod_level == 0) return;
  // At most as many sequences and rows as the largest element.
  context.DeriveLoD("Out", {"X"}, element.lod_level,
                    [](std::span<const LoD* const> parents, LoD* lod) { *lod = *parents[0]; });
}

// There is room for the planned rows, and for fewer.
void CheckElement(const Tensor& element, const Shape& planned, DType dtype, int64_t index) {
  Shape shape = element.shape();
  const bool has_rows = shape.rank() == planned.rank() && shape.rank() > 0;
  if (has_rows) shape[0] = std::max(shape[0], planned[0]);
  SKIFF_ENFORCE(shape == planned && element.dtype() == dtype, kInvalidArgument,
                "read_from_array: element ", index, " is ", element.dtype(), " ", element.shape(),
                ", expected ", dtype, " ", planned, " or fewer rows");
}

// Reads an element that may have other rows in each run.
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  return MakeRowsKernel([x = In<>(context, "X"), i = In<int64_t>(context, "I"),
                         out = Out<>(context, "Out"),
                         planned = context.Output("Out").shape](const KernelContext& run) {
    const int64_t index = *i(run);
    const Tensor& element = x.tensor(run).array()->At(index);
    Tensor& to = out.tensor(run);
    if (planned.is_known()) {
      CheckElement(element, planned, to.dtype(), index);
    } else {
      to = Tensor(element.shape(), element.dtype(), element.place());
    }
    SetRowsLike(element, &to);
    MemoryMoverOf(run).CopyBytes(run, element.raw_data(), to.raw_data(), element.byte_count());
  });
}

std::unique_ptr<Kernel> PrepareGradient(PrepareContext& context) {
  return MakeRowsKernel([x = In<>(context, "X"), i = In<int64_t>(context, "I"),
                         out = Out<>(context, "Out")](const KernelContext& run) {
    TensorArray& array = *x.tensor(run).array();
    const int64_t index = *i(run);
    Tensor& to = out.tensor(run);
    const Tensor* element = array.Find(index);
    if (element == nullptr)
      return MemoryMoverOf(run).ZeroBytes(run, to.raw_data(), to.byte_count());
    SKIFF_ENFORCE(element->shape() == to.shape() && element->dtype() == to.dtype(),
                  kInvalidArgument, "read_from_array: element ", index, " is ", element->dtype(),
                  " ", element->shape(), ", expected ", to.dtype(), " ", to.shape());
    MemoryMoverOf(run).CopyBytes(run, element->raw_data(), to.raw_data(), to.byte_count());
    // What was written at this index before has a gradient of its own.
    array.Remove(index);
  });
}

std::vector<Op> Gradient(const GradContext& context) {
  Op grad("write_to_array");
  grad.SetInput("X", context.OutputGrad("Out"));
  grad.SetInput("I", context.Input("I"));
  grad.SetOutput("Out", context.InputGrad("X"));
  return {std::move(grad)};
}

}  // namespace

void RegisterReadFromArray(OpRegistry& registry) {
  OpDef def;
  def.type = "read_from_array";
  def.doc = "A copy of element I of an array.";
  def.inputs = {
      {.name = "X", .doc = "The array.", .array = true},
      {.name = "I", .doc = "The index: one int64.", .checks_data = true, .on_host = true},
      {.name = "X_W",
       .doc = "Of the gradient of write_to_array: what was written. Out is like it, and 0 "
              "if X has no such element.",
       .dispensable = true,
       .shape_only = true}};
  def.outputs = {{.name = "Out", .doc = "Like the element."}};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.grad = Gradient;
  def.kernel_dtype_slot = "Out";
  def.sets_rows = [](const Op& op) { return !IsGradient(op); };
  def.element = ElementRule{
      .array = "X", .index = "I", .applies = [](const Op& op) { return !IsGradient(op); }};
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "read_from_array", [](PrepareContext& context) {
    return IsGradient(context.op()) ? PrepareGradient(context) : Prepare(context);
  });
}

}  // namespace skiff
