// Element types. The enumerators are those of Fluid's VarType.Type, so that a program file and the
// `dtype` attributes inside it need no translation.
#pragma once

#include <cstdint>
#include <ostream>
#include <string_view>

#include "framework/base/error.h"

namespace skiff {

enum class DType : int32_t {
  kBool = 0,
  kInt16 = 1,
  kInt32 = 2,
  kInt64 = 3,
  kFloat16 = 4,
  kFloat32 = 5,
  kFloat64 = 6,
  kUint8 = 20,
  kInt8 = 21,
  kBFloat16 = 22,
};

// Whether the value of a file's enumerator is one of ours.
bool IsDType(int32_t value);

// The DType of a `dtype` attribute; Error if there is none of that value.
DType DTypeFromAttribute(int32_t value);

// Bytes of one element.
int64_t SizeOf(DType dtype);

// "float32", "int64", …
std::string_view DTypeName(DType dtype);

// The inverse of DTypeName; Error if the name is unknown.
DType DTypeFromName(std::string_view name);

constexpr bool IsFloat(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kFloat16 ||
         dtype == DType::kBFloat16;
}

// Whether it is a floating-point dtype of two bytes, whose parameters have master weights.
constexpr bool IsHalf(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

std::ostream& operator<<(std::ostream& stream, DType dtype);

// The DType of a C++ type.
template <typename T>
struct DTypeOfType;
template <>
struct DTypeOfType<bool> {
  static constexpr DType value = DType::kBool;
};
template <>
struct DTypeOfType<int16_t> {
  static constexpr DType value = DType::kInt16;
};
template <>
struct DTypeOfType<int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOfType<int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOfType<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOfType<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOfType<uint8_t> {
  static constexpr DType value = DType::kUint8;
};
template <>
struct DTypeOfType<int8_t> {
  static constexpr DType value = DType::kInt8;
};
template <typename T>
inline constexpr DType kDTypeOf = DTypeOfType<T>::value;

// Calls visitor(T{}) with the C++ type of dtype; `what` names the caller in the Error for a dtype
// outside the listed ones.
template <typename... Ts, typename Visitor>
void VisitDType(DType dtype, std::string_view what, Visitor&& visitor) {
  const bool found = ((dtype == kDTypeOf<Ts> ? (visitor(Ts{}), true) : false) || ...);
  SKIFF_ENFORCE(found, kInvalidArgument, what, ": dtype ", DTypeName(dtype), " is not supported");
}

}  // namespace skiff
