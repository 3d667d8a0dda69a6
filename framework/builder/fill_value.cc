#include "framework/builder/fill_value.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "framework/builder/layer_call.h"
#include "framework/builder/tensor.h"

namespace skiff {
namespace {

template <typename T>
std::string ExactText(T value) {
  std::array<char, 40> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

}  // namespace

void SetFillValue(Op* op, DType dtype, double value) {
  const auto rounded = static_cast<float>(value);
  op->SetAttr("value", rounded);
  // Most constants are exact as a float, which is all that Fluid's attribute `value` can hold.
  if (static_cast<double>(rounded) == value) return;
  if (dtype == DType::kFloat64) {
    op->SetAttr("str_value", ExactText(value));
  } else if (dtype == DType::kInt64 || dtype == DType::kInt32) {
    op->SetAttr("str_value", ExactText(static_cast<int64_t>(value)));
  }
}

bool MayHold(DType dtype, double number) { return IsFloat(dtype) || number == std::trunc(number); }

Variable NumberLike(const Variable& like, double number, const std::source_location& site) {
  const LayerCall call("number", "", site);
  call.Use(like);
  call.Enforce(MayHold(like.dtype(), number), number, " is not a whole number, as \"", like.name(),
               "\" of ", like.dtype(), " needs");
  return layers::FillConstant({}, like.dtype(), number, site);
}

}  // namespace skiff
