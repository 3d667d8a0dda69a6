#include "operators/tensor/kernels/fill.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "framework/base/error.h"
#include "framework/base/number_text.h"
#include "framework/base/parallel.h"
#include "operators/common/half.h"

namespace skiff {
namespace {

template <typename Visitor>
void VisitFillDType(DType dtype, std::string_view what, Visitor&& visitor) {
  VisitDType<bool, int8_t, uint8_t, int16_t, int32_t, int64_t, Float16, BFloat16, float, double>(
      dtype, what, std::forward<Visitor>(visitor));
}

template <typename T>
bool Holds(const FillValue& value) {
  if constexpr (std::is_floating_point_v<WideType<T>> || std::is_same_v<T, bool>) {
    return true;
  } else if (value.is_integer) {
    return value.integer >= int64_t{std::numeric_limits<T>::min()} &&
           value.integer <= int64_t{std::numeric_limits<T>::max()};
  } else {
    // The bounds are powers of two (or 0), which a double represents exactly. A value less than 1
    // below the lower bound is truncated to it.
    const double lowest = static_cast<double>(std::numeric_limits<T>::min());
    const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
    return (value.real >= lowest || value.real > lowest - 1.0) && value.real < limit;
  }
}

template <typename T>
T As(const FillValue& value) {
  using Wide = WideType<T>;
  return static_cast<T>(value.is_integer ? static_cast<Wide>(value.integer)
                                         : static_cast<Wide>(value.real));
}

FillValue FillValueFromText(const std::string& text, const std::string& op) {
  // An integer first, so that a number beyond 2^53 keeps all its digits.
  const std::optional<int64_t> integer = ParseNumber<int64_t>(text);
  if (integer)
    return {.is_integer = true, .real = static_cast<double>(*integer), .integer = *integer};
  const std::optional<double> real = ParseNumber<double>(text);
  SKIFF_ENFORCE(real.has_value(), kInvalidArgument, op, ": str_value = \"", text,
                "\" is not a number");
  return {.real = *real};
}

}  // namespace

FillValue FillValueFromAttributes(const OpContext& context) {
  const std::string& text = context.Attr<std::string>("str_value");
  if (!text.empty()) return FillValueFromText(text, context.op().type);
  return {.real = context.Attr<float>("value")};
}

FillValue FillValueFromTensor(const Tensor& tensor, std::string_view what) {
  SKIFF_ENFORCE(tensor.element_count() == 1, kInvalidArgument, what, " has shape ", tensor.shape(),
                ", expected one element");
  FillValue value;
  VisitFillDType(tensor.dtype(), what, [&]<typename T>(T) {
    const auto element = static_cast<WideType<T>>(*tensor.data<T>());
    value.is_integer = std::is_integral_v<T>;
    value.real = static_cast<double>(element);
    if constexpr (std::is_integral_v<T>) value.integer = static_cast<int64_t>(element);
  });
  return value;
}

void CheckFillValue(const FillValue& value, DType dtype, std::string_view what) {
  VisitFillDType(dtype, what, [&]<typename T>(T) {
    SKIFF_ENFORCE(Holds<T>(value), kOutOfRange, what, ": value ", value.real,
                  " is outside the range of ", dtype);
  });
}

void FillTensor(const FillValue& value, Tensor* out) {
  VisitFillDType(out->dtype(), "fill", [&]<typename T>(T) {
    T* data = out->data<T>();
    const T element = As<T>(value);
    ParallelFor(out->element_count(), 16384,
                [=](int64_t begin, int64_t end) { std::fill(data + begin, data + end, element); });
  });
}

uint64_t FillBits(const FillValue& value, DType dtype) {
  uint64_t bits = 0;
  VisitFillDType(dtype, "fill", [&]<typename T>(T) {
    const T element = As<T>(value);
    std::memcpy(&bits, &element, sizeof(T));
  });
  return bits;
}

}  // namespace skiff
