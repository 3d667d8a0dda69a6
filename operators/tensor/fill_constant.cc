// fill_constant: every element of Out is one value.
//
// Source: Fluid's fill_constant. The value is that of ValueTensor (read at run time) if present,
// else of `str_value` if not empty, else of `value`. Integers in `str_value` and ValueTensor stay
// exact up to 64 bits, unlike the float attribute.
#include "framework/base/error.h"
#include "operators/common/input_checks.h"
#include "operators/tensor/kernels/data_movement.h"
#include "operators/tensor/kernels/fill.h"

namespace skiff {
namespace {

void InferFillConstant(OpContext& context) {
  const std::vector<int64_t> dims = context.DimsAttr("shape");
  const Shape shape{std::span<const int64_t>(dims)};
  for (const int64_t dim : shape) {
    SKIFF_ENFORCE(dim >= 0 || !context.Knows("shape"), kInvalidArgument,
                  "fill_constant: shape = ", shape, " has a negative dim");
  }
  const DType dtype = DTypeFromAttribute(static_cast<int32_t>(context.IntAttr("dtype")));
  if (context.HasInput("ValueTensor")) {
    CheckOneElement(context, "ValueTensor");
  } else {
    CheckFillValue(FillValueFromAttributes(context), dtype, "fill_constant");
  }
  context.SetOutput("Out", shape, dtype);
}

std::unique_ptr<Kernel> PrepareFillConstant(PrepareContext& context) {
  const Out<> out(context, "Out");
  const In<> value_tensor(context, "ValueTensor");
  if (!value_tensor.is_there()) {
    return MakeKernel([out, value = FillValueFromAttributes(context)](const KernelContext& run) {
      FillTensor(value, &out.tensor(run));
    });
  }
  return MakeKernel([out, value_tensor](const KernelContext& run) {
    // The value of a tensor is only known now, and so is whether it fits the dtype.
    const FillValue value =
        FillValueFromTensor(value_tensor.tensor(run), "fill_constant: ValueTensor");
    CheckFillValue(value, out.tensor(run).dtype(), "fill_constant: ValueTensor");
    FillTensor(value, &out.tensor(run));
  });
}

}  // namespace

void RegisterFillConstant(OpRegistry& registry) {
  OpDef def;
  def.type = "fill_constant";
  def.doc = "Out[i] = the value of ValueTensor, else `str_value`, else `value`.";
  def.inputs = {{.name = "ValueTensor",
                 .doc = "One element: the value, read at run time.",
                 .dispensable = true,
                 .checks_data = true},
                AttributeSlot("ShapeTensor", "shape", /*for_shape=*/true),
                AttributeListSlot("ShapeTensorList", "shape", /*for_shape=*/true)};
  def.outputs = {{.name = "Out", .doc = "A tensor of `shape` and `dtype`."}};
  def.attrs = {
      {.name = "dtype",
       .type = AttrType::kInt,
       .default_value = int32_t{5},
       .doc = "The element type of Out, as Fluid's enumerator."},
      {.name = "shape",
       .type = AttrType::kLongs,
       .default_value = std::vector<int64_t>{},
       .doc = "The shape of Out; empty: a scalar."},
      {.name = "value", .type = AttrType::kFloat, .default_value = 0.0f, .doc = "The value."},
      {.name = "str_value",
       .type = AttrType::kString,
       .default_value = std::string(),
       .doc = "The value as text, exact where a float is not: \"9007199254740993\", \"inf\"."},
      {.name = "force_cpu",
       .type = AttrType::kBool,
       .default_value = false,
       .doc = "A hint of Fluid's about the place; ignored."},
      {.name = "place_type",
       .type = AttrType::kInt,
       .default_value = int32_t{-1},
       .doc = "A hint of Fluid's about the place; ignored."}};
  def.infer = InferFillConstant;
  // Out has the dtype of the attribute.
  def.precision = Precision::kNone;
  def.no_gradient_reason = "the output is a constant";
  def.kernel_dtype_slot = "Out";
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, "fill_constant", PrepareFillConstant);
}

}  // namespace skiff
