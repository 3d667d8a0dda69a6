#include "operators/tensor/kernels/data_movement.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "framework/base/error.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_mover.h"

namespace skiff {

Shape UnknownDims(int64_t rank) {
  SKIFF_ENFORCE(rank <= Shape::kMaxRank, kInvalidArgument, "a tensor of rank ", rank,
                ", expected at most ", Shape::kMaxRank);
  return Shape(std::vector<int64_t>(static_cast<size_t>(std::max<int64_t>(rank, 0)), -1));
}

int64_t ProductOrUnknown(const Shape& shape, int begin, int end) {
  bool unknown = false;
  Shape known;
  for (int axis = begin; axis < end; ++axis) {
    if (shape[axis] < 0) {
      unknown = true;
    } else {
      known.Append(shape[axis]);
    }
  }
  // A dim of 0 makes the product 0, whatever the unknown dims are.
  const int64_t product = known.element_count();
  return unknown && product != 0 ? -1 : product;
}

void SetLodLevel(OpContext& context, bool same_rows, std::string_view input, std::string_view slot,
                 size_t i) {
  const int index = context.OutputIndex(slot, i);
  if (index < 0) return;
  TensorMeta& output = context.mutable_outputs()[static_cast<size_t>(index)];
  output.lod_level = same_rows ? context.Input(input).lod_level : 0;
  output.lod = same_rows ? context.Input(input).lod : nullptr;
}

Shape WithoutDecreasedAxes(const OpContext& context, const Shape& extent) {
  std::array<bool, Shape::kMaxRank> drop{};
  for (const int64_t given : context.IntsAttr("decrease_axis")) {
    const int axis = NormalizeAxis(given, extent.rank(), context.op().type + ": decrease_axis");
    SKIFF_ENFORCE(extent[axis] == 1 || extent[axis] < 0, kInvalidArgument, context.op().type,
                  ": decrease_axis names axis ", axis, ", which has extent ", extent[axis],
                  " after slicing; expected 1");
    drop[axis] = true;
  }
  Shape out;
  for (int axis = 0; axis < extent.rank(); ++axis) {
    if (!drop[axis]) out.Append(extent[axis]);
  }
  return out;
}

void SetReshapedOutput(OpContext& context, const Shape& shape) {
  const TensorMeta& x = context.Input("X");
  context.SetOutput("Out", shape, x.dtype);
  SetLodLevel(context, x.shape.rank() > 0 && shape.rank() > 0 && x.shape[0] == shape[0]);
  // XShape is [0] + dims: it holds no elements, so carrying the shape costs no memory.
  if (!context.HasOutput("XShape")) return;
  Shape x_shape{0};
  for (const int64_t dim : x.shape) x_shape.Append(dim);
  context.SetOutput("XShape", x_shape, x.dtype);
}

SlotDef XShapeOutput() {
  return {.name = "XShape",
          .doc = "[0] + the dims of X: carries the shape to the gradient and holds no elements.",
          .dispensable = true,
          .intermediate = true};
}

Shape DimsInXShape(const OpContext& context) {
  const TensorMeta& grad = context.Input("Out@GRAD");
  const TensorMeta& x_shape = context.Input("XShape");
  SKIFF_ENFORCE(x_shape.shape.rank() >= 1 && x_shape.shape[0] <= 0 && x_shape.dtype == grad.dtype,
                kInvalidArgument, context.op().type, ": XShape is ", x_shape.dtype, " ",
                x_shape.shape, ", expected ", grad.dtype, " [0] + the dims of X, for Out@GRAD of ",
                grad.shape);
  return Shape(x_shape.shape.dims().subspan(1));
}

void AddReshapeGrad(OpRegistry& registry, StaticText type, StaticText forward,
                    std::vector<SlotDef> unused) {
  OpDef def;
  def.type = type;
  def.doc = StrCat(
      "X@GRAD has the elements of Out@GRAD in the same order and the shape of X, which are "
      "the dims of XShape without the first. Gradient of ",
      forward, ".");
  def.inputs = {{.name = "Out@GRAD", .doc = "The gradient of Out."},
                {.name = "XShape", .doc = "XShape of the forward op.", .shape_only = true}};
  std::ranges::move(unused, std::back_inserter(def.inputs));
  def.outputs = {{.name = "X@GRAD", .doc = "The gradient of X."}};
  def.infer = [](OpContext& context) {
    const TensorMeta& grad = context.Input("Out@GRAD");
    const Shape shape = DimsInXShape(context);
    if (shape.is_known() && grad.shape.is_known()) {
      SKIFF_ENFORCE(shape.element_count() == grad.shape.element_count(), kInvalidArgument,
                    context.op().type, ": Out@GRAD of shape ", grad.shape,
                    " does not have as many elements as X of shape ", shape);
    }
    context.SetOutput("X@GRAD", shape, grad.dtype);
  };
  def.precision = Precision::kFollow;
  def.no_gradient_reason = "second derivatives are not provided";
  def.kernel_dtype_slot = "Out@GRAD";
  def.in_place = {{"Out@GRAD", "X@GRAD"}};
  def.views = {{"Out@GRAD", "X@GRAD"}};
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, type, CopyFactory("Out@GRAD", "X@GRAD"));
}

GradRule ReshapeGradRule(StaticText grad_type) {
  return GradOp(grad_type, {"Out@GRAD", "XShape"}, {"X@GRAD"});
}

KernelFactory CopyFactory(StaticText input, StaticText output) {
  return [input, output](PrepareContext& context) {
    const In<> from(context, input);
    const Out<> to(context, output);
    return MakeRowsKernel([from, to](const KernelContext& run) {
      // feed and fetch may run without their holder.
      if (!from.is_there() || !to.is_there()) return;
      const Tensor& source = from.tensor(run);
      Tensor& target = to.tensor(run);
      SKIFF_ENFORCE(source.byte_count() == target.byte_count(), kInvalidArgument, "copy of ",
                    source.dtype(), " ", source.shape(), " into ", target.dtype(), " ",
                    target.shape(), ", expected as many bytes");
      MemoryMoverOf(run).CopyBytes(run, source.raw_data(), target.raw_data(), source.byte_count());
    });
  };
}

}  // namespace skiff
