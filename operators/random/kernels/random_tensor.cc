#include "operators/random/kernels/random_tensor.h"

#include <span>

#include "framework/base/error.h"

namespace skiff {

Shape RandomShapeOf(const OpContext& context) {
  const std::string& op = context.op().type;
  for (const char* slot : {"ShapeTensor", "ShapeTensorList"}) {
    SKIFF_ENFORCE(context.def().FindInput(slot) == nullptr || context.InputCount(slot) == 0,
                  kUnimplemented, op, ": input \"", slot,
                  "\" is connected; expected the shape in the attribute instead");
  }
  const std::vector<int64_t> dims = context.IntsAttr("shape");
  const Shape shape{std::span<const int64_t>(dims)};
  SKIFF_ENFORCE(shape.is_known(), kInvalidArgument, op, ": shape = ", shape, " has a negative dim");
  return shape;
}

void InferRandomTensor(OpContext& context) {
  const Shape shape = RandomShapeOf(context);
  const DType dtype = DTypeFromAttribute(static_cast<int32_t>(context.IntAttr("dtype")));
  SKIFF_ENFORCE(dtype == DType::kFloat32 || dtype == DType::kFloat64, kInvalidArgument,
                context.op().type, ": dtype is ", dtype, ", expected float32 or float64");
  context.SetOutput("Out", shape, dtype);
}

std::vector<SlotDef> RuntimeShapeSlots() {
  const char* doc = "Not supported: an Error if connected. Fluid reads the shape from here.";
  return {{.name = "ShapeTensor", .doc = doc, .dispensable = true},
          {.name = "ShapeTensorList", .doc = doc, .duplicable = true, .dispensable = true}};
}

std::vector<AttrDef> RandomTensorAttrs(AttrType shape_type) {
  AttrDef shape{.name = "shape", .type = shape_type, .doc = "The shape of Out."};
  // If Fluid also takes the shape from a tensor, the attribute may be left out.
  if (shape_type == AttrType::kLongs) shape.default_value = std::vector<int64_t>{};
  return {std::move(shape),
          {.name = "dtype",
           .type = AttrType::kInt,
           .default_value = int32_t{5},
           .doc = "float32 or float64, as Fluid's enumerator."},
          {.name = "seed",
           .type = AttrType::kInt,
           .default_value = int32_t{0},
           .doc = "Not 0: draw by this seed alone, the same numbers in every op, run and step."}};
}

}  // namespace skiff
