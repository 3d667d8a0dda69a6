// flip: Out = X read backwards along each of `axis`.
//
// Source: Fluid's flip. Axes may be negative. The same number twice is an Error, as in Fluid, but 1
// and -1 of a matrix are accepted and name one axis. The gradient flips Out@GRAD.
#include <algorithm>
#include <array>
#include <set>

#include "framework/base/error.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/data_mover.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {
namespace {

std::array<bool, Shape::kMaxRank> FlippedAxes(const OpContext& context) {
  const int rank = context.Input("X").shape.rank();
  const std::vector<int64_t> axes = context.IntsAttr("axis");
  SKIFF_ENFORCE(std::set<int64_t>(axes.begin(), axes.end()).size() == axes.size(), kInvalidArgument,
                "flip: axis = [", Join(axes, ", "), "] names an axis twice");
  std::array<bool, Shape::kMaxRank> flipped{};
  for (const int64_t axis : axes) flipped[NormalizeAxis(axis, rank, "flip: axis")] = true;
  return flipped;
}

std::unique_ptr<Kernel> PrepareFlip(PrepareContext& context) {
  const TensorMeta& x = context.Input("X");
  const auto flipped = FlippedAxes(context);
  const auto target_strides = RowMajorStrides(x.shape);
  auto source_strides = target_strides;
  int64_t offset = 0;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    if (!flipped[axis] || x.shape[axis] == 0) continue;
    // Starts at the last element of the axis and walks backwards, so one strided copy does any
    // flip.
    offset += (x.shape[axis] - 1) * source_strides[axis];
    source_strides[axis] = -source_strides[axis];
  }
  const int64_t bytes = SizeOf(x.dtype);
  return MakeKernel([copy = StridedCopy(x.shape.dims(), source_strides, target_strides, bytes),
                     offset_bytes = offset * bytes, from = In<>(context, "X"),
                     to = Out<>(context, "Out")](const KernelContext& run) {
    MoverOf(run).Copy(run, copy, static_cast<const char*>(from(run)) + offset_bytes, to(run));
  });
}

std::vector<Op> FlipGrad(const GradContext& context) {
  Op flip("flip");
  flip.attrs = context.forward().attrs;
  flip.SetInput("X", context.OutputGrad("Out")).SetOutput("Out", context.InputGrad("X"));
  return {std::move(flip)};
}

}  // namespace

void RegisterFlip(OpRegistry& registry) {
  OpDef def;
  def.type = "flip";
  def.doc = "Out = X read backwards along each of `axis`.";
  def.inputs = {{.name = "X", .doc = "Any tensor."}};
  def.outputs = {{.name = "Out", .doc = "Of X's shape."}};
  def.attrs = {{.name = "axis",
                .type = AttrType::kInts,
                .doc = "The axes to flip, negative from the back; none: Out = X."}};
  def.infer = [](OpContext& context) {
    FlippedAxes(context);
    context.SetOutputLike("Out", "X");
  };
  def.precision = Precision::kFollow;
  def.grad = FlipGrad;
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "flip", PrepareFlip);
}

}  // namespace skiff
