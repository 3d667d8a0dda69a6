// The value of an op's attribute.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace skiff {

// A sub-block, by its index in the program.
struct BlockIndex {
  int32_t value = -1;
  friend auto operator<=>(const BlockIndex&, const BlockIndex&) = default;
};

// A variable, by name (Fluid's VAR attributes).
struct VarName {
  std::string value;
  friend auto operator<=>(const VarName&, const VarName&) = default;
};

// The alternatives are in the order of Fluid's AttrType, so that index() is the enumerator.
using AttributeVariant =
    std::variant<int32_t, float, std::string, std::vector<int32_t>, std::vector<float>,
                 std::vector<std::string>, bool, std::vector<bool>, BlockIndex, int64_t,
                 std::vector<BlockIndex>, std::vector<int64_t>, std::vector<double>, VarName,
                 std::vector<VarName>, double>;

// A variant whose constructors, assignments and destructor are out of line: inlined, they would be
// compiled anew, for sixteen alternatives, in every file that has an attribute. Other integers than
// int32_t and int64_t aren't converted.
class Attribute : public AttributeVariant {
 public:
  Attribute();
  Attribute(int32_t value);
  Attribute(float value);
  Attribute(std::string value);
  // Throws Error for a null pointer.
  Attribute(const char* value);
  Attribute(std::nullptr_t) = delete;
  Attribute(std::vector<int32_t> value);
  Attribute(std::vector<float> value);
  Attribute(std::vector<std::string> value);
  // Exactly a bool: pointers, functions and lambdas convert to one.
  template <std::same_as<bool> Bool>
  Attribute(Bool value) : Attribute(value, nullptr) {}
  Attribute(std::vector<bool> value);
  Attribute(BlockIndex value);
  Attribute(int64_t value);
  Attribute(std::vector<BlockIndex> value);
  Attribute(std::vector<int64_t> value);
  Attribute(std::vector<double> value);
  Attribute(VarName value);
  Attribute(std::vector<VarName> value);
  Attribute(double value);
  Attribute(const Attribute& other);
  Attribute(Attribute&& other) noexcept;
  Attribute& operator=(const Attribute& other);
  Attribute& operator=(Attribute&& other) noexcept;
  ~Attribute();

 private:
  Attribute(bool value, std::nullptr_t);
};

enum class AttrType : int32_t {
  kInt = 0,
  kFloat = 1,
  kString = 2,
  kInts = 3,
  kFloats = 4,
  kStrings = 5,
  kBool = 6,
  kBools = 7,
  kBlock = 8,
  kLong = 9,
  kBlocks = 10,
  kLongs = 11,
  kDoubles = 12,
  kVar = 13,
  kVars = 14,
  kDouble = 15,
};

inline AttrType TypeOf(const Attribute& attribute) {
  return static_cast<AttrType>(attribute.index());
}

// Returns the type of attributes whose value is a T.
template <typename T>
constexpr AttrType AttrTypeOf() {
  return []<typename... Alternatives>(std::variant<Alternatives...>*) {
    static_assert((std::is_same_v<T, Alternatives> || ...));
    int32_t type = 0;
    static_cast<void>(((std::is_same_v<T, Alternatives> || (++type, false)) || ...));
    return static_cast<AttrType>(type);
  }(static_cast<AttributeVariant*>(nullptr));
}

// Returns "int", "float", "string", "ints", …, the names that the text format uses.
std::string_view AttrTypeName(AttrType type);

// Returns whether an attribute of the type is a floating-point number or a list of such.
constexpr bool IsFloats(AttrType type) {
  return type == AttrType::kFloat || type == AttrType::kFloats;
}
// Returns whether an attribute of the type is one number, whole or not.
constexpr bool IsOneNumber(AttrType type) {
  return type == AttrType::kInt || type == AttrType::kLong || type == AttrType::kFloat;
}

// Ordered by name, so that printing and saving are deterministic.
using AttributeMap = std::map<std::string, Attribute>;

// Returns whether type and value are equal. Floating-point values compare bit by bit: a NaN equals
// itself, and 0.0 differs from -0.0.
bool SameAttribute(const Attribute& a, const Attribute& b);
bool SameAttributes(const AttributeMap& a, const AttributeMap& b);

}  // namespace skiff
