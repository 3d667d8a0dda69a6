#include "framework/executor/lowering/constant_outputs.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "framework/base/error.h"
#include "framework/op/evaluation.h"
#include "framework/op/infer_outputs.h"

namespace skiff {
namespace {

// Returns the attributes of an assign_value that makes the tensor; nothing for a dtype that it
// doesn't have.
std::optional<AttributeMap> AttributesOfConstant(const Tensor& tensor) {
  AttributeMap attrs = {{"shape", tensor.shape().ToVector()},
                        {"dtype", static_cast<int32_t>(tensor.dtype())}};
  switch (tensor.dtype()) {
    case DType::kBool: {
      const auto values = tensor.values<bool>();
      attrs["bool_values"] = std::vector<int32_t>(values.begin(), values.end());
      return attrs;
    }
    case DType::kInt32:
      attrs["int32_values"] = tensor.ToVector<int32_t>();
      return attrs;
    case DType::kInt64:
      attrs["int64_values"] = tensor.ToVector<int64_t>();
      return attrs;
    case DType::kFloat32:
      attrs["fp32_values"] = tensor.ToVector<float>();
      return attrs;
    case DType::kFloat64:
      attrs["fp64_values"] = tensor.ToVector<double>();
      return attrs;
    default:
      return std::nullopt;
  }
}

// Returns the outputs in order; nothing if the op can't be evaluated.
std::optional<std::vector<KnownContents::Contents>> OutputsOf(const OpRegistry& registry,
                                                              OpContext* context) {
  try {
    InferOutputs(context);
    if (!MayEvaluate(*context)) return std::nullopt;
    return Evaluate(registry, *context);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kResourceExhausted) throw;
    return std::nullopt;
  }
}

}  // namespace

std::optional<std::vector<ConstantOutput>> ConstantOutputsOf(const OpRegistry& registry,
                                                             const Op& op, const OpDef& def,
                                                             std::vector<TensorMeta> inputs) {
  OpContext context(op, def, std::move(inputs),
                    std::vector<TensorMeta>(OutputOrder(def, op).size()));
  const auto made = OutputsOf(registry, &context);
  if (!made) return std::nullopt;
  std::vector<ConstantOutput> outputs;
  for (const KnownContents::Contents& contents : *made) {
    ConstantOutput& output = outputs.emplace_back(ConstantOutput{.contents = contents});
    if (contents == nullptr) continue;
    std::optional<AttributeMap> attributes = AttributesOfConstant(*contents);
    if (!attributes) return std::nullopt;
    output.attributes = std::move(*attributes);
  }
  return outputs;
}

}  // namespace skiff
