#include "framework/base/dtype.h"

#include <array>
#include <ostream>
#include <utility>

namespace skiff {
namespace {

struct DTypeFacts {
  DType dtype;
  std::string_view name;
  int64_t bytes;
};

constexpr std::array<DTypeFacts, 10> kDTypes{{
    {DType::kBool, "bool", 1},
    {DType::kInt16, "int16", 2},
    {DType::kInt32, "int32", 4},
    {DType::kInt64, "int64", 8},
    {DType::kFloat16, "float16", 2},
    {DType::kFloat32, "float32", 4},
    {DType::kFloat64, "float64", 8},
    {DType::kUint8, "uint8", 1},
    {DType::kInt8, "int8", 1},
    {DType::kBFloat16, "bfloat16", 2},
}};

// A search over ten entries: a table indexed by value would have gaps, since the enumerators are
// Fluid's.
const DTypeFacts& FactsOf(DType dtype) {
  for (const DTypeFacts& facts : kDTypes) {
    if (facts.dtype == dtype) return facts;
  }
  Throw(ErrorCode::kInvalidArgument, "unknown dtype ", static_cast<int32_t>(dtype));
}

}  // namespace

bool IsDType(int32_t value) {
  for (const DTypeFacts& facts : kDTypes) {
    if (static_cast<int32_t>(facts.dtype) == value) return true;
  }
  return false;
}

DType DTypeFromAttribute(int32_t value) { return FactsOf(static_cast<DType>(value)).dtype; }

int64_t SizeOf(DType dtype) { return FactsOf(dtype).bytes; }

std::string_view DTypeName(DType dtype) { return FactsOf(dtype).name; }

DType DTypeFromName(std::string_view name) {
  for (const DTypeFacts& facts : kDTypes) {
    if (facts.name == name) return facts.dtype;
  }
  Throw(ErrorCode::kInvalidArgument, "unknown dtype \"", name, "\"");
}

std::ostream& operator<<(std::ostream& stream, DType dtype) { return stream << DTypeName(dtype); }

}  // namespace skiff
