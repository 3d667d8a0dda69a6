#include "framework/onnx/shifted_number.h"

#include <optional>

#include "framework/ir/program.h"

namespace skiff {
namespace {

std::optional<int64_t> OneInt(const Tensor* tensor) {
  if (tensor == nullptr || tensor->element_count() != 1) return std::nullopt;
  if (tensor->dtype() == DType::kInt64) return tensor->Item<int64_t>();
  if (tensor->dtype() == DType::kInt32) return tensor->Item<int32_t>();
  return std::nullopt;
}

}  // namespace

ShiftedNumber ShiftedNumberOf(const Variable& x,
                              const std::function<const Tensor*(const std::string&)>& known) {
  ShiftedNumber number{.base = x.name(), .by = 0};
  const auto& ops = x.block()->ops();
  // From the last op on, since each op reads what those before it have made.
  for (size_t i = ops.size(); i-- > 0;) {
    const Op& op = *ops[i];
    const auto& out = op.Output("Out");
    if (out.size() != 1 || out[0] != number.base) continue;
    if (op.type == "reshape2" || op.type == "unsqueeze2" || op.type == "squeeze2") {
      number.base = op.Input("X")[0];
      continue;
    }
    const bool adds = op.type == "elementwise_add";
    if (!adds && op.type != "elementwise_sub") break;
    const std::string& left = op.Input("X")[0];
    const std::string& right = op.Input("Y")[0];
    if (const auto add = OneInt(known(right))) {
      number.by += adds ? *add : -*add;
      number.base = left;
    } else if (const auto to = OneInt(known(left)); to && adds) {
      number.by += *to;
      number.base = right;
    } else {
      break;
    }
  }
  return number;
}

}  // namespace skiff
