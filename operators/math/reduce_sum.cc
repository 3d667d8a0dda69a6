// reduce_sum: Out = the sum of X over the axes `dim`, or over all of them.
// Source: Fluid's reduce_sum; dX at an element = dOut at the sum that it was added to.
// A full sum without keep_dim is a scalar (rank 0).
#include <vector>

#include "framework/base/error.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/common/reduce.h"

namespace skiff {
namespace {

// Whether each axis of X is summed over.
std::vector<bool> ReducedAxes(const OpContext& context) {
  const Shape& shape = context.Input("X").shape;
  const std::vector<int64_t> axes = context.IntsAttr("dim");
  const bool all = context.Attr<bool>("reduce_all") || axes.empty();
  std::vector<bool> reduced(static_cast<size_t>(shape.rank()), all);
  if (all) return reduced;
  for (const int64_t axis : axes) {
    const int index = NormalizeAxis(axis, shape.rank(), StrCat(context.op().type, ": dim"));
    reduced[static_cast<size_t>(index)] = true;
  }
  return reduced;
}

Shape ReducedShape(const OpContext& context) {
  const Shape& shape = context.Input("X").shape;
  const std::vector<bool> reduced = ReducedAxes(context);
  const bool keep_dim = context.Attr<bool>("keep_dim");
  Shape out;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!reduced[static_cast<size_t>(axis)]) {
      out.Append(shape[axis]);
    } else if (keep_dim) {
      out.Append(1);
    }
  }
  return out;
}

void CheckDtypes(const OpContext& context) {
  const DType dtype = context.Input("X").dtype;
  for (const char* name : {"in_dtype", "out_dtype"}) {
    const int64_t wanted = context.IntAttr(name);
    SKIFF_ENFORCE(wanted < 0 || wanted == static_cast<int64_t>(dtype), kUnimplemented,
                  context.op().type, ": ", name, " = ", wanted, ", expected -1 or X's own, ",
                  static_cast<int32_t>(dtype), " (", dtype, "); cast X before");
  }
}

void Infer(OpContext& context) {
  CheckDtypes(context);
  const bool keeps_rows = context.Input("X").shape.rank() > 0 && !ReducedAxes(context).front();
  if (keeps_rows) context.SetOutputLike("Out", "X");
  context.SetOutput("Out", ReducedShape(context), context.Input("X").dtype);
}

void InferGrad(OpContext& context) {
  CheckDtypes(context);
  CheckGradientLike(context, "Out@GRAD", ReducedShape(context), context.Input("X").dtype);
  context.SetOutputLike("X@GRAD", "X");
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const int x = context.InputIndex("X");
  const int out = context.OutputIndex("Out");
  const AxisReduction reduction(context.Input("X").shape, ReducedAxes(context));
  return MakeKernel([=](const KernelContext& run) {
    reduction.Sum(run.input(x).data<T>(), run.output(out).data<T>());
  });
}

template <typename T>
std::unique_ptr<Kernel> PrepareGrad(PrepareContext& context) {
  const int gradient = context.InputIndex("Out@GRAD");
  const int dx = context.OutputIndex("X@GRAD");
  const AxisReduction reduction(context.Input("X").shape, ReducedAxes(context));
  return MakeKernel([=](const KernelContext& run) {
    reduction.Broadcast(run.input(gradient).data<T>(), T{1}, run.output(dx).data<T>());
  });
}

std::vector<AttrDef> Attributes() {
  return {{.name = "dim",
           .type = AttrType::kInts,
           .default_value = Attribute(std::vector<int32_t>{0}),
           .doc = "The axes to sum over; negative ones count from the back, none means all."},
          {.name = "keep_dim",
           .type = AttrType::kBool,
           .default_value = Attribute(false),
           .doc = "Summed axes stay as dims of 1."},
          {.name = "reduce_all",
           .type = AttrType::kBool,
           .default_value = Attribute(false),
           .doc = "Sum over all axes, whatever `dim` says."},
          {.name = "in_dtype",
           .type = AttrType::kInt,
           .default_value = Attribute(int32_t{-1}),
           .doc = "-1 or X's dtype."},
          {.name = "out_dtype",
           .type = AttrType::kInt,
           .default_value = Attribute(int32_t{-1}),
           .doc = "-1 or X's dtype."}};
}

}  // namespace

void RegisterReduceSum(OpRegistry& registry) {
  registry.Add({.type = "reduce_sum",
                .doc = "Out = the sum of X over the axes `dim`. Fluid's reduce_sum.",
                .inputs = {{.name = "X", .doc = "Of any shape."}},
                .outputs = {{.name = "Out", .doc = "The sums; of rank 0 if no dim is left."}},
                .attrs = Attributes(),
                .infer = Infer,
                .grad = GradOp("reduce_sum_grad", {"X", "Out@GRAD"}, {"X@GRAD"})});
  registry.Add({.type = "reduce_sum_grad",
                .doc = "The gradient of reduce_sum: dX = dOut, broadcast over the summed axes.",
                .inputs = {{.name = "X", .doc = "The input of reduce_sum.", .shape_only = true},
                           {.name = "Out@GRAD", .doc = "The gradient of Out."}},
                .outputs = {{.name = "X@GRAD", .doc = "Of X's shape."}},
                .attrs = Attributes(),
                .infer = InferGrad,
                .no_gradient_reason = "second derivatives are not provided",
                .kernel_dtype_slot = "Out@GRAD"});
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "reduce_sum", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "reduce_sum_grad",
      []<typename T>(PrepareContext& context) { return PrepareGrad<T>(context); });
}

}  // namespace skiff
