// transpose2: Out[i_axis[0], i_axis[1], …] = X[i_0, i_1, …], so dim k of Out is dim axis[k] of X.
//
// Source: Fluid's transpose2; the gradient is the inverse permutation.
#include <algorithm>
#include <array>

#include "framework/base/error.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/data_mover.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {
namespace {

using Permutation = std::array<int, Shape::kMaxRank>;

Permutation PermutationOf(const OpContext& context, int rank) {
  const std::string& op = context.op().type;
  const std::vector<int64_t> axes = context.IntsAttr("axis");
  SKIFF_ENFORCE(static_cast<int>(axes.size()) == rank, kInvalidArgument, op, ": axis = [",
                Join(axes, ", "), "] has ", axes.size(), " entries, expected the rank ", rank);
  Permutation permutation{};
  std::array<bool, Shape::kMaxRank> used{};
  for (int i = 0; i < rank; ++i) {
    const int axis = NormalizeAxis(axes[static_cast<size_t>(i)], rank, op + ": axis");
    SKIFF_ENFORCE(!used[axis], kInvalidArgument, op, ": axis = [", Join(axes, ", "),
                  "] names axis ", axis, " twice");
    used[axis] = true;
    permutation[i] = axis;
  }
  return permutation;
}

Permutation Inverse(const Permutation& permutation, int rank) {
  Permutation inverse{};
  for (int i = 0; i < rank; ++i) inverse[permutation[i]] = i;
  return inverse;
}

Shape Permuted(const Shape& shape, const Permutation& permutation) {
  Shape permuted = shape;
  for (int i = 0; i < shape.rank(); ++i) permuted[i] = shape[permutation[i]];
  return permuted;
}

// Allocates nothing.
StridedCopy PermutingCopy(const Shape& from, const Permutation& permutation, DType dtype) {
  const Shape to = Permuted(from, permutation);
  const auto from_strides = RowMajorStrides(from);
  const auto to_strides = RowMajorStrides(to);
  std::array<int64_t, Shape::kMaxRank> source_strides{};
  for (int i = 0; i < to.rank(); ++i) source_strides[i] = from_strides[permutation[i]];
  return StridedCopy(to.dims(), source_strides, to_strides, SizeOf(dtype));
}

void InferTranspose(OpContext& context) {
  const TensorMeta& x = context.Input("X");
  const Permutation permutation = PermutationOf(context, x.shape.rank());
  SetReshapedOutput(context, Permuted(x.shape, permutation));
  // The LoD describes rows, which are lost if dim 0 moves.
  const int out = context.OutputIndex("Out");
  if (out >= 0 && x.shape.rank() > 0 && permutation[0] != 0) {
    context.mutable_outputs()[static_cast<size_t>(out)].lod_level = 0;
  }
}

void InferTransposeGrad(OpContext& context) {
  const TensorMeta& grad = context.Input("Out@GRAD");
  const int rank = grad.shape.rank();
  Shape shape = Permuted(grad.shape, Inverse(PermutationOf(context, rank), rank));
  if (context.HasInput("XShape")) {
    const Shape x = DimsInXShape(context);
    SKIFF_ENFORCE(x.rank() == rank, kInvalidArgument, "transpose2_grad: XShape names the dims ", x,
                  " of X, expected as many as Out@GRAD of shape ", grad.shape, " has");
    for (int i = 0; i < rank; ++i) {
      shape[i] = MergeDims(shape[i], x[i], "transpose2_grad: Out@GRAD and XShape");
    }
  }
  context.SetOutput("X@GRAD", shape, grad.dtype);
}

KernelFactory PermuteFactory(StaticText input, StaticText output, bool inverse) {
  return [input, output, inverse](PrepareContext& context) {
    const TensorMeta& x = context.Input(input);
    const int rank = x.shape.rank();
    Permutation permutation = PermutationOf(context, rank);
    if (inverse) permutation = Inverse(permutation, rank);
    return MakeRowsKernel([permutation, from = In<>(context, input),
                           to = Out<>(context, output)](const KernelContext& run) {
      if (!to.is_there()) return;
      const StridedCopy copy =
          PermutingCopy(from.shape(run), permutation, from.tensor(run).dtype());
      MoverOf(run).Copy(run, copy, from(run), to(run));
    });
  };
}

}  // namespace

void RegisterTranspose2(OpRegistry& registry) {
  OpDef def;
  def.type = "transpose2";
  def.doc = "Out = X with its axes permuted: dim k of Out is dim axis[k] of X.";
  def.inputs = {{.name = "X", .doc = "Any tensor."}};
  def.outputs = {{.name = "Out", .doc = "X with permuted axes."}, XShapeOutput()};
  def.attrs = {{.name = "axis",
                .type = AttrType::kInts,
                .doc = "Dim k of Out is dim axis[k] of X: a permutation of the axes."}};
  def.infer = InferTranspose;
  def.precision = Precision::kFollow;
  OpDef grad = GradientOf(&def, {"Out@GRAD", Optional(ForShape("XShape"))}, {"X@GRAD"});
  grad.doc = "X@GRAD = Out@GRAD with the permutation of transpose2 undone.";
  grad.infer = InferTransposeGrad;
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "transpose2", PermuteFactory("X", "Out", /*inverse=*/false));
  registry.Add(std::move(grad));
  AddKernelsForAllDTypes(registry, "transpose2_grad",
                         PermuteFactory("Out@GRAD", "X@GRAD", /*inverse=*/true));
}

}  // namespace skiff
