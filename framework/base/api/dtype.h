// Element types of tensors. The enumerators are those of Fluid's VarType.Type, so program files and
// `dtype` attributes need no translation.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string_view>

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

// Returns "float32", "int64", ….
std::string_view DTypeName(DType dtype);

// Returns the DType with this name. Throws Error if the name is unknown.
DType DTypeFromName(std::string_view name);

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

}  // namespace skiff
