#include "framework/ir/attribute.h"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>
#include <utility>

#include "framework/base/error.h"

namespace skiff {
namespace {

std::string TextAt(const char* text) {
  SKIFF_ENFORCE(text != nullptr, kInvalidArgument,
                "the value of an attribute is a null pointer, expected a string");
  return text;
}

// In the order of AttrType, which is Fluid's. The text format uses these names, so they can't
// change.
constexpr std::array<std::string_view, std::variant_size_v<AttributeVariant>> kAttrTypeNames{
    "int",   "float", "string", "ints",  "floats",  "strings", "bool", "bools",
    "block", "long",  "blocks", "longs", "doubles", "var",     "vars", "double"};

struct SameValue {
  template <typename T>
  bool operator()(const T& a, const T& b) const {
    return a == b;
  }
  // Values of different types are never equal, even if they are the same number.
  template <typename T, typename U>
  bool operator()(const T&, const U&) const {
    return false;
  }
  // By bits: a program with a NaN must equal its copy, and 0.0 and -0.0 are different constants.
  bool operator()(float a, float b) const {
    return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
  }
  bool operator()(double a, double b) const {
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
  }
  template <typename T>
  requires std::is_floating_point_v<T>
  bool operator()(const std::vector<T>& a, const std::vector<T>& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), *this);
  }
};

}  // namespace

Attribute::Attribute() = default;
Attribute::Attribute(int32_t value) : AttributeVariant(value) {}
Attribute::Attribute(float value) : AttributeVariant(value) {}
Attribute::Attribute(std::string value) : AttributeVariant(std::move(value)) {}
Attribute::Attribute(const char* value) : AttributeVariant(TextAt(value)) {}
Attribute::Attribute(std::vector<int32_t> value) : AttributeVariant(std::move(value)) {}
Attribute::Attribute(std::vector<float> value) : AttributeVariant(std::move(value)) {}
Attribute::Attribute(std::vector<std::string> value) : AttributeVariant(std::move(value)) {}
Attribute::Attribute(bool value, std::nullptr_t) : AttributeVariant(value) {}
Attribute::Attribute(std::vector<bool> value) : AttributeVariant(std::move(value)) {}
Attribute::Attribute(BlockIndex value) : AttributeVariant(value) {}
Attribute::Attribute(int64_t value) : AttributeVariant(value) {}
Attribute::Attribute(std::vector<BlockIndex> value) : AttributeVariant(std::move(value)) {}
Attribute::Attribute(std::vector<int64_t> value) : AttributeVariant(std::move(value)) {}
Attribute::Attribute(std::vector<double> value) : AttributeVariant(std::move(value)) {}
Attribute::Attribute(VarName value) : AttributeVariant(std::move(value)) {}
Attribute::Attribute(std::vector<VarName> value) : AttributeVariant(std::move(value)) {}
Attribute::Attribute(double value) : AttributeVariant(value) {}
Attribute::Attribute(const Attribute& other) = default;
Attribute::Attribute(Attribute&& other) noexcept = default;
Attribute& Attribute::operator=(const Attribute& other) = default;
Attribute& Attribute::operator=(Attribute&& other) noexcept = default;
Attribute::~Attribute() = default;

std::string_view AttrTypeName(AttrType type) {
  const auto index = static_cast<size_t>(type);
  SKIFF_ENFORCE(index < kAttrTypeNames.size(), kInvalidArgument, "unknown attribute type ", index);
  return kAttrTypeNames[index];
}

bool SameAttribute(const Attribute& a, const Attribute& b) { return std::visit(SameValue(), a, b); }

bool SameAttributes(const AttributeMap& a, const AttributeMap& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && SameAttribute(x.second, y.second);
  });
}

}  // namespace skiff
