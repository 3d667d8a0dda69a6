// Element types of tensors. The enumerators are those of Fluid's VarType.Type, so program files and
// `dtype` attributes need no translation.
#pragma once

#include <cstdint>
#include <iosfwd>
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

// Returns whether a number read from a file is a DType that Skiff supports.
bool IsDType(int32_t value);

// Returns the DType of a `dtype` attribute. Throws Error if Skiff supports no DType of that value.
DType DTypeFromAttribute(int32_t value);

// Returns the bytes of one element.
int64_t SizeOf(DType dtype);

// Returns "float32", "int64", ….
std::string_view DTypeName(DType dtype);

// Returns the DType with this name. Throws Error if the name is unknown.
DType DTypeFromName(std::string_view name);

constexpr bool IsFloat(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kFloat16 ||
         dtype == DType::kBFloat16;
}

// Returns whether `dtype` is a floating-point type of two bytes. Parameters of these types have
// master weights.
constexpr bool IsHalf(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

inline std::string TextOf(DType dtype) { return std::string(DTypeName(dtype)); }
std::ostream& operator<<(std::ostream& stream, DType dtype);

// kDTypeOf<T> is the DType of the C++ type T.
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

// Calls visitor(T{}), where T is the one of Ts that corresponds to `dtype`. Throws Error, starting
// with `what`, if none does.
template <typename... Ts, typename Visitor>
void VisitDType(DType dtype, std::string_view what, Visitor&& visitor) {
  const bool found = ((dtype == kDTypeOf<Ts> ? (visitor(Ts{}), true) : false) || ...);
  SKIFF_ENFORCE(found, kInvalidArgument, what, ": dtype ", DTypeName(dtype), " is not supported");
}

}  // namespace skiff
