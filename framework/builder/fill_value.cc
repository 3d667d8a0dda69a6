#include "framework/builder/fill_value.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string>

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

bool MayHold(DType dtype, double number) {
  if (IsFloat(dtype)) return true;
  if (number != std::trunc(number)) return false;
  const auto in = [number](double least, double end) { return number >= least && number < end; };
  switch (dtype) {
    case DType::kBool:
      return in(0, 2);
    case DType::kUint8:
      return in(0, 0x1p8);
    case DType::kInt8:
      return in(-0x1p7, 0x1p7);
    case DType::kInt16:
      return in(-0x1p15, 0x1p15);
    case DType::kInt32:
      return in(-0x1p31, 0x1p31);
    default:
      return in(-0x1p63, 0x1p63);
  }
}

}  // namespace skiff
