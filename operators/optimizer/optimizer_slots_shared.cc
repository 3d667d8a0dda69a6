#include "operators/optimizer/optimizer_slots_shared.h"

#include <utility>

#include "framework/base/error.h"
#include "operators/common/input_checks.h"

namespace skiff {

SlotDef ParamSlot() { return {.name = "Param", .doc = "The parameter, float32 or float64."}; }
SlotDef GradSlot() { return {.name = "Grad", .doc = "Its gradient, of Param's shape."}; }

SlotDef LearningRateSlot() {
  return {.name = "LearningRate",
          .doc = "One element, float32 or of Param's dtype: the learning rate."};
}

SlotDef ParamOutSlot() {
  return {.name = "ParamOut", .doc = "The parameter after the step; usually Param itself."};
}

SlotDef MasterParamSlot() {
  return {.name = "MasterParam",
          .doc =
              "Not supported: an Error if connected. Fluid keeps a float32 copy of a float16 "
              "parameter here.",
          .dispensable = true};
}

SlotDef MasterParamOutSlot() {
  return {.name = "MasterParamOut", .doc = "Not supported, as MasterParam.", .dispensable = true};
}

AttrDef MultiPrecisionAttr() {
  return BoolAttr("multi_precision", "Float16 parameters with float32 copies; only false.");
}

void RejectMultiPrecision(const OpContext& context) {
  const std::string& op = context.op().type;
  SKIFF_ENFORCE(!context.Attr<bool>("multi_precision"), kUnimplemented, op,
                ": multi_precision = true is not supported, set it to false");
  SKIFF_ENFORCE(
      context.InputCount("MasterParam") == 0 && context.OutputCount("MasterParamOut") == 0,
      kUnimplemented, op,
      ": MasterParam is connected; parameters with a float32 copy are "
      "not supported");
}

void CheckLikeParam(const OpContext& context, const std::string& slot) {
  const TensorMeta& param = context.Input("Param");
  CheckInputLike(context, slot, param.shape, param.dtype);
}

void CheckScalar(const OpContext& context, const std::string& slot) {
  if (!context.HasInput(slot)) return;
  const TensorMeta& scalar = context.Input(slot);
  CheckOneElement(context, slot);
  const DType param = context.Input("Param").dtype;
  SKIFF_ENFORCE(scalar.dtype == DType::kFloat32 || (scalar.dtype == param && IsFloat(param)),
                kInvalidArgument, context.op().type, ": ", slot, " is ", scalar.dtype,
                ", expected float32 or Param's dtype, ", param);
}

double ScalarOf(const Tensor& tensor) {
  return tensor.dtype() == DType::kFloat64 ? tensor.Item<double>()
                                           : static_cast<double>(tensor.Item<float>());
}

AttrDef FloatAttr(std::string name, float default_value, std::string doc) {
  return {.name = std::move(name),
          .type = AttrType::kFloat,
          .default_value = default_value,
          .doc = std::move(doc)};
}

AttrDef BoolAttr(std::string name, std::string doc) {
  return {.name = std::move(name),
          .type = AttrType::kBool,
          .default_value = false,
          .doc = std::move(doc)};
}

}  // namespace skiff
