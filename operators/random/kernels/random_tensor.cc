#include "operators/random/kernels/random_tensor.h"

#include <span>

#include "framework/base/error.h"

namespace skiff {

Shape RandomShapeOf(const OpContext& context) {
  const std::vector<int64_t> dims = context.DimsAttr("shape");
  const Shape shape{std::span<const int64_t>(dims)};
  SKIFF_ENFORCE(shape.is_known() || !context.Knows("shape"), kInvalidArgument, context.op().type,
                ": shape = ", shape, " has a negative dim");
  return shape;
}

void InferRandomTensor(OpContext& context) {
  const Shape shape = RandomShapeOf(context);
  const DType dtype = DTypeFromAttribute(static_cast<int32_t>(context.IntAttr("dtype")));
  SKIFF_ENFORCE(dtype == DType::kFloat32 || dtype == DType::kFloat64, kInvalidArgument,
                context.op().type, ": dtype is ", dtype, ", expected float32 or float64");
  context.SetOutput("Out", shape, dtype);
}

std::vector<SlotDef> ShapeSlots() {
  return {AttributeSlot("ShapeTensor", "shape", /*for_shape=*/true),
          AttributeListSlot("ShapeTensorList", "shape", /*for_shape=*/true)};
}

std::vector<AttrDef> RandomTensorAttrs(AttrType shape_type) {
  AttrDef shape{.name = "shape", .type = shape_type, .doc = "The shape of Out."};
  // If Fluid also takes the shape from a tensor, the attribute may be left out.
  if (shape_type == AttrType::kLongs) shape.default_value = std::vector<int64_t>{};
  return {std::move(shape),
          {.name = "dtype",
           .type = AttrType::kInt,
           .default_value = int32_t{5},
           .doc = "float32 or float64, as Fluid's enumerator.",
           .names_dtype = true},
          {.name = "seed",
           .type = AttrType::kInt,
           .default_value = int32_t{0},
           .doc = "Not 0: draw by this seed alone, the same numbers in every op, run and step."}};
}

}  // namespace skiff
