#include "framework/op/declared_types.h"

#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "framework/base/str_cat.h"
#include "framework/ir/text.h"

namespace skiff {
namespace {

// Returns an integer as another type of number, or nothing if that can't hold it.
template <typename To, std::integral From>
std::optional<To> Exactly(From value) {
  if constexpr (std::same_as<To, bool>) {
    if (value != From{0} && value != From{1}) return std::nullopt;
    return value != From{0};
  } else if constexpr (std::integral<To>) {
    const auto wide = static_cast<int64_t>(value);
    if (!std::in_range<To>(wide)) return std::nullopt;
    return static_cast<To>(wide);
  } else {
    const auto number = static_cast<To>(value);
    // 2^63, the least number that is too large to be converted back.
    if (number >= -static_cast<To>(std::numeric_limits<int64_t>::min())) return std::nullopt;
    if (static_cast<int64_t>(number) != static_cast<int64_t>(value)) return std::nullopt;
    return number;
  }
}

template <typename To, std::floating_point From>
std::optional<To> Exactly(From value) {
  if constexpr (std::floating_point<To>) {
    if (std::isfinite(value) && std::abs(value) > std::numeric_limits<To>::max()) {
      return std::nullopt;
    }
    return static_cast<To>(value);
  } else {
    const auto least = static_cast<From>(std::numeric_limits<int64_t>::min());
    if (!(value >= least && value < -least) || std::trunc(value) != value) return std::nullopt;
    return Exactly<To>(static_cast<int64_t>(value));
  }
}

template <typename T>
inline constexpr bool kIsList = false;
template <typename T>
inline constexpr bool kIsList<std::vector<T>> = true;

// Returns the value as a To, if that is possible.
template <typename To, typename From>
std::optional<Attribute> As(const From& value) {
  if constexpr (std::is_arithmetic_v<To> && std::is_arithmetic_v<From>) {
    if (const std::optional<To> number = Exactly<To>(value)) return Attribute(*number);
  } else if constexpr (kIsList<To> && kIsList<From>) {
    using Element = typename To::value_type;
    To list;
    if constexpr (std::is_arithmetic_v<Element> &&
                  std::is_arithmetic_v<typename From::value_type>) {
      for (const auto element : value) {
        const std::optional<Element> number = Exactly<Element>(element);
        if (!number) return std::nullopt;
        list.push_back(*number);
      }
    } else if (!value.empty()) {
      return std::nullopt;
    }
    return Attribute(std::move(list));
  }
  return std::nullopt;
}

template <size_t kType = 0>
std::optional<Attribute> AsType(const Attribute& value, AttrType type) {
  if constexpr (kType < std::variant_size_v<AttributeVariant>) {
    if (static_cast<AttrType>(kType) != type) return AsType<kType + 1>(value, type);
    using To = std::variant_alternative_t<kType, AttributeVariant>;
    return std::visit([](const auto& from) { return As<To>(from); },
                      static_cast<const AttributeVariant&>(value));
  } else {
    return std::nullopt;
  }
}

bool IsInteger(AttrType type) { return type == AttrType::kInt || type == AttrType::kLong; }
bool IsIntegers(AttrType type) { return type == AttrType::kInts || type == AttrType::kLongs; }

}  // namespace

std::vector<std::string> TakeDeclaredTypes(const OpDef& def, Op* op) {
  std::vector<std::string> messages;
  for (const AttrDef& attr : def.attrs) {
    const auto found = op->attrs.find(attr.name);
    if (found == op->attrs.end()) continue;
    const AttrType type = TypeOf(found->second);
    const bool is_declared = type == attr.type || (IsInteger(type) && IsInteger(attr.type)) ||
                             (IsIntegers(type) && IsIntegers(attr.type));
    if (is_declared) continue;
    std::optional<Attribute> converted = AsType(found->second, attr.type);
    if (!converted) continue;
    messages.push_back(StrCat("attribute \"", attr.name, "\" is of type ", AttrTypeName(type),
                              ", expected ", AttrTypeName(attr.type), "; it is taken as ",
                              PrintAttribute(*converted)));
    found->second = *std::move(converted);
  }
  return messages;
}

void TakeDeclaredTypes(const OpRegistry& registry, Program* program) {
  for (size_t b = 0; b < program->block_count(); ++b) {
    for (const auto& op : program->block(static_cast<int32_t>(b))->ops()) {
      const OpDef* def = registry.Find(op->type);
      if (def != nullptr) TakeDeclaredTypes(*def, op.get());
    }
  }
}

}  // namespace skiff
