// meshgrid: Out[k][i0, i1, …] = X[k][ik] for each of the vectors X.
//
// Source: Fluid's meshgrid: two or more vectors; a scalar counts as a vector of one element. The
// gradient sums Out@GRAD[k] over all axes but k. Its slot for these is called "outputs@GRAD", as in
// PaddlePaddle 2.6.
#include <array>
#include <utility>

#include "framework/base/error.h"
#include "framework/tensor/dims_agree.h"
#include "operators/common/cpu/reduce.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/data_mover.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {
namespace {

Shape GridShape(const OpContext& context) {
  const std::string& op = context.op().type;
  const size_t count = context.InputCount("X");
  SKIFF_ENFORCE(count >= 2, kInvalidArgument, op, ": there are ", count,
                " vectors, expected two or more");
  Shape grid;
  for (size_t i = 0; i < count; ++i) {
    const TensorMeta& x = context.Input("X", i);
    SKIFF_ENFORCE(x.shape.rank() <= 1, kInvalidArgument, op, ": X[", i, "] has shape ", x.shape,
                  ", expected a vector or a scalar");
    SKIFF_ENFORCE(x.dtype == context.Input("X").dtype, kInvalidArgument, op, ": X[", i, "] is ",
                  x.dtype, ", X[0] ", context.Input("X").dtype, "; expected the same");
    grid.Append(x.shape.rank() == 0 ? 1 : x.shape[0]);
  }
  return grid;
}

void InferMeshgrid(OpContext& context) {
  const Shape grid = GridShape(context);
  SKIFF_ENFORCE(context.OutputCount("Out") == context.InputCount("X"), kInvalidArgument,
                "meshgrid: ", context.OutputCount("Out"), " outputs for ", context.InputCount("X"),
                " vectors");
  for (size_t i = 0; i < context.InputCount("X"); ++i) {
    context.SetOutput("Out", grid, context.Input("X").dtype, i);
  }
}

void InferMeshgridGrad(OpContext& context) {
  const Shape grid = GridShape(context);
  SKIFF_ENFORCE(context.InputCount("outputs@GRAD") == context.InputCount("X"), kInvalidArgument,
                "meshgrid_grad: ", context.InputCount("outputs@GRAD"), " gradients for ",
                context.InputCount("X"), " vectors");
  for (size_t i = 0; i < context.InputCount("X"); ++i) {
    const TensorMeta& grad = context.Input("outputs@GRAD", i);
    const DType dtype = context.Input("X").dtype;
    SKIFF_ENFORCE(DimsAgree(grad.shape.dims(), grid.dims()) && grad.dtype == dtype,
                  kInvalidArgument, "meshgrid_grad: outputs@GRAD[", i, "] is ", grad.dtype, " ",
                  grad.shape, ", expected ", dtype, " ", grid);
    context.SetOutputLike("X@GRAD", "X", i);
  }
}

struct Spread {
  StridedCopy copy;
  In<> from;
  Out<> to;
};

std::unique_ptr<Kernel> PrepareMeshgrid(PrepareContext& context) {
  const Shape grid = GridShape(context);
  const auto strides = RowMajorStrides(grid);
  std::vector<Spread> spreads;
  for (size_t i = 0; i < context.InputCount("X"); ++i) {
    std::array<int64_t, Shape::kMaxRank> along{};
    // All other strides are 0, which repeats the vector along the other axes.
    along[i] = 1;
    const Out<> to(context, "Out", i);
    if (!to.is_there()) continue;
    spreads.push_back({StridedCopy(grid.dims(), along, strides, SizeOf(context.Input("X").dtype)),
                       {context, "X", i},
                       to});
  }
  return MakeKernel([spreads = std::move(spreads)](const KernelContext& run) {
    for (const Spread& spread : spreads) {
      MoverOf(run).Copy(run, spread.copy, spread.from(run), spread.to(run));
    }
  });
}

template <typename T>
struct Sum {
  AxisReduction reduction;
  In<T> from;
  Out<T> to;
};

template <typename T>
std::unique_ptr<Kernel> PrepareMeshgridGrad(PrepareContext& context) {
  const Shape grid = GridShape(context);
  std::vector<Sum<T>> sums;
  for (size_t i = 0; i < context.InputCount("X"); ++i) {
    AxisFlags reduced{};
    std::fill_n(reduced.begin(), grid.rank(), true);
    reduced[i] = false;
    const Out<T> to(context, "X@GRAD", i);
    if (!to.is_there()) continue;
    sums.push_back({AxisReduction(grid, reduced), {context, "outputs@GRAD", i}, to});
  }
  return MakeKernel([sums = std::move(sums)](const KernelContext& run) {
    for (const Sum<T>& sum : sums) {
      sum.reduction.Sum(sum.from(run), sum.to(run));
    }
  });
}

std::vector<Op> MeshgridGrad(const GradContext& context) {
  Op grad("meshgrid_grad");
  grad.attrs = context.forward().attrs;
  grad.SetInput("X", context.Input("X")).SetInput("outputs@GRAD", context.OutputGrad("Out"));
  grad.SetOutput("X@GRAD", context.InputGrad("X"));
  return {std::move(grad)};
}

void AddMeshgridGrad(OpRegistry& registry) {
  OpDef def;
  def.type = "meshgrid_grad";
  def.doc = "X@GRAD[k] = the sum of the gradient of Out[k] over all axes but k.";
  def.inputs = {
      {.name = "X", .doc = "The vectors of meshgrid.", .duplicable = true, .shape_only = true},
      {.name = "outputs@GRAD", .doc = "The gradients of Out.", .duplicable = true}};
  def.outputs = {{.name = "X@GRAD", .doc = "The gradients of X.", .duplicable = true}};
  def.infer = InferMeshgridGrad;
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "second derivatives are not provided";
  def.kernel_dtype_slot = "outputs@GRAD";
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, int32_t, int64_t>(
      "meshgrid_grad",
      []<typename T>(PrepareContext& context) { return PrepareMeshgridGrad<T>(context); });
}

}  // namespace

void RegisterMeshgrid(OpRegistry& registry) {
  OpDef def;
  def.type = "meshgrid";
  def.doc = "Out[k][i0, i1, …] = X[k][ik].";
  def.inputs = {{.name = "X", .doc = "Two or more vectors of one dtype.", .duplicable = true}};
  def.outputs = {{.name = "Out", .doc = "A grid for each vector.", .duplicable = true}};
  def.infer = InferMeshgrid;
  def.precision = Precision::kFollow;
  def.grad = MeshgridGrad;
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "meshgrid", PrepareMeshgrid);
  AddMeshgridGrad(registry);
}

}  // namespace skiff
