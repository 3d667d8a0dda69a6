// split_lod_tensor: the rows of X where Mask is true, and the others.
//
// Source: Fluid's split_lod_tensor. Its gradient is merge_lod_tensor.
#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/row_mask.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  CheckRowMask(context);
  const TensorMeta& x = context.Input("X");
  Shape shape = x.shape;
  shape[0] = -1;
  context.SetOutput("OutTrue", shape, x.dtype);
  context.SetOutput("OutFalse", shape, x.dtype);
}

// Copies the rows whose mask is `value` to an output, if it is there.
void CopyRows(const Tensor& x, const Tensor& mask, bool value, bool is_planned, Tensor* out) {
  Shape shape = x.shape();
  shape[0] = CountRows(mask, value);
  if (is_planned) {
    SKIFF_ENFORCE(out->shape() == shape, kInvalidArgument, "split_lod_tensor: the mask chooses ",
                  shape, " of X, planned ", out->shape());
  } else {
    *out = Tensor(shape, x.dtype(), x.place());
  }
  const int64_t bytes = RowBytes(x);
  const auto* from = static_cast<const char*>(x.raw_data());
  auto* to = static_cast<char*>(out->raw_data());
  for (const bool chosen : mask.values<bool>()) {
    if (chosen == value) {
      std::memcpy(to, from, static_cast<size_t>(bytes));
      to += bytes;
    }
    from += bytes;
  }
}

std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const Out<> out_true(context, "OutTrue");
  const Out<> out_false(context, "OutFalse");
  const auto is_planned = [&](const char* slot) {
    return context.HasOutput(slot) && context.Output(slot).shape.is_known();
  };
  return MakeKernel([x = In<>(context, "X"), mask = In<>(context, "Mask"), out_true, out_false,
                     plans_true = is_planned("OutTrue"),
                     plans_false = is_planned("OutFalse")](const KernelContext& run) {
    if (out_true.is_there()) {
      CopyRows(x.tensor(run), mask.tensor(run), true, plans_true, &out_true.tensor(run));
    }
    if (out_false.is_there()) {
      CopyRows(x.tensor(run), mask.tensor(run), false, plans_false, &out_false.tensor(run));
    }
  });
}

std::vector<Op> Gradient(const GradContext& context) {
  Op grad("merge_lod_tensor");
  grad.SetInput("X", context.Input("X")).SetInput("Mask", context.Input("Mask"));
  grad.SetInput("InTrue", context.OutputGrad("OutTrue"));
  grad.SetInput("InFalse", context.OutputGrad("OutFalse"));
  grad.SetOutput("Out", context.InputGrad("X"));
  return {std::move(grad)};
}

}  // namespace

void RegisterSplitLodTensor(OpRegistry& registry) {
  OpDef def;
  def.type = "split_lod_tensor";
  def.doc = "The rows of X where Mask is true, and the others.";
  def.inputs = {{.name = "X", .doc = "[rows, …]."},
                {.name = "Mask", .doc = "bool [rows, 1].", .checks_data = true}};
  def.outputs = {{.name = "OutTrue", .doc = "The rows where Mask is true.", .dispensable = true},
                 {.name = "OutFalse", .doc = "The other rows.", .dispensable = true}};
  def.attrs = {{.name = "level",
                .type = AttrType::kInt,
                .default_value = 0,
                .doc = "The LoD level to split; ignored, since X has none."}};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.grad = Gradient;
  def.data_dependent_shape = true;
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "split_lod_tensor", Prepare);
}

}  // namespace skiff
