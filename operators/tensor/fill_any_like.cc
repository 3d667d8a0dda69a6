// fill_any_like: Out = one value in the shape of X.
//
// Source: Fluid's fill_any_like, which PaddlePaddle's backward pass inserts where a gradient does
// not exist: that of the last states of an rnn that nothing reads.
#include "framework/base/error.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/fill.h"

namespace skiff {
namespace {

void InferFillAnyLike(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const int64_t attribute = context.IntAttr("dtype");
  const DType dtype =
      attribute == -1 ? x.dtype : DTypeFromAttribute(static_cast<int32_t>(attribute));
  CheckFillValue({.real = context.Attr<float>("value")}, dtype, context.op().type);
  context.SetOutputLike("Out", "X");
  context.SetOutput("Out", x.shape, dtype);
}

}  // namespace

void RegisterFillAnyLike(OpRegistry& registry) {
  OpDef def;
  def.type = "fill_any_like";
  def.doc = "Out[i] = `value`, with the shape of X.";
  def.inputs = {{.name = "X", .doc = "Gives the shape, and the dtype.", .shape_only = true}};
  def.outputs = {{.name = "Out", .doc = "Like X, of `dtype`."}};
  def.attrs = {
      {.name = "value", .type = AttrType::kFloat, .default_value = 0.0f, .doc = "The value."},
      {.name = "dtype",
       .type = AttrType::kInt,
       .default_value = int32_t{-1},
       .doc = "The element type of Out, as Fluid's enumerator; -1: that of X.",
       .names_dtype = true}};
  def.infer = InferFillAnyLike;
  // Out has the dtype of the attribute, or that of X, whose data the op doesn't read.
  def.precision = Precision::kNone;
  def.no_gradient_reason = "the output is a constant";
  def.kernel_dtype_slot = "Out";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "fill_any_like", [](PrepareContext& context) {
    const Out<> out(context, "Out");
    const FillValue value{.real = context.Attr<float>("value")};
    return MakeRowsKernel([=](const KernelContext& run) { FillTensor(value, &out.tensor(run)); });
  });
}

}  // namespace skiff
