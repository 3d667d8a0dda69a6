// What the code of Skiff asks of element types.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/api/dtype.h"
#include "framework/base/error.h"

namespace skiff {

// Returns whether a number read from a file is a DType that Skiff supports.
bool IsDType(int32_t value);

// Returns the DType of a `dtype` attribute. Throws Error if Skiff supports no DType of that value.
DType DTypeFromAttribute(int32_t value);

// Returns the bytes of one element.
int64_t SizeOf(DType dtype);

constexpr bool IsFloat(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kFloat16 ||
         dtype == DType::kBFloat16;
}

// Returns whether `dtype` is a floating-point type of two bytes. Parameters of these types have
// master weights.
constexpr bool IsHalf(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

inline std::string TextOf(DType dtype) { return std::string(DTypeName(dtype)); }

// Calls visitor(T{}), where T is the one of Ts that corresponds to `dtype`. Throws Error, starting
// with `what`, if none does.
template <typename... Ts, typename Visitor>
void VisitDType(DType dtype, std::string_view what, Visitor&& visitor) {
  const bool found = ((dtype == kDTypeOf<Ts> ? (visitor(Ts{}), true) : false) || ...);
  SKIFF_ENFORCE(found, kInvalidArgument, what, ": dtype ", DTypeName(dtype), " is not supported");
}

}  // namespace skiff
