#include "framework/onnx/normalization_ops.h"

#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "framework/builder/layer_call.h"
#include "framework/builder/tensor_layers.h"

namespace skiff {
namespace {

Variable Append(const char* type, const NormalizationOp& from,
                const std::vector<std::string>& saved) {
  const auto flat = [](const Variable& v) {
    return v.dims().size() == 1 ? v : layers::Reshape(v, {-1});
  };
  Op op(type);
  op.SetInput("X", {from.x.name()});
  if (from.scale.defined()) op.SetInput("Scale", {flat(from.scale).name()});
  if (from.shift.defined()) op.SetInput("Bias", {flat(from.shift).name()});
  op.SetAttr("epsilon", from.epsilon).SetAttr("begin_norm_axis", from.axis);
  const LayerCall layer(type, "", std::source_location::current());
  for (const std::string& slot : saved) op.SetOutput(slot, {layer.NewSavedOutput()});
  return layer.AppendFor(std::move(op), "Y");
}

}  // namespace

Variable LayerNormOf(const NormalizationOp& op) {
  return Append("layer_norm", op, {"Mean", "Variance"});
}

Variable RmsNormOf(const NormalizationOp& op) { return Append("rms_norm", op, {"MeanSquare"}); }

}  // namespace skiff
