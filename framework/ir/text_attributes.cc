// Values nest no deeper than a list, so the depth of calls is bounded for any text.
#include "framework/ir/text_attributes.h"

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "framework/base/error.h"
#include "framework/ir/text_escape.h"

namespace skiff {
namespace {

constexpr size_t kAttrTypes = std::variant_size_v<AttributeVariant>;

template <typename T>
struct IsList : std::false_type {};
template <typename T>
struct IsList<std::vector<T>> : std::true_type {};

bool ParseBool(TextScanner* scan) {
  if (scan->TryWord("true")) return true;
  if (!scan->TryWord("false")) scan->ThrowExpected("true or false");
  return false;
}

template <typename T>
std::vector<T> ParseList(TextScanner* scan);

template <typename T>
T ParseValue(TextScanner* scan) {
  if constexpr (IsList<T>::value) {
    return ParseList<typename T::value_type>(scan);
  } else if constexpr (std::is_same_v<T, bool>) {
    return ParseBool(scan);
  } else if constexpr (std::is_same_v<T, float>) {
    return scan->Float("a float");
  } else if constexpr (std::is_same_v<T, double>) {
    return scan->Double("a double");
  } else if constexpr (std::is_same_v<T, std::string>) {
    return scan->String("a string in quotes");
  } else if constexpr (std::is_same_v<T, VarName>) {
    return VarName{scan->Name("the name of a variable")};
  } else if constexpr (std::is_same_v<T, BlockIndex>) {
    return BlockIndex{scan->Number<int32_t>("a block index")};
  } else {
    return scan->Number<T>("an integer");
  }
}

template <typename T>
std::vector<T> ParseList(TextScanner* scan) {
  std::vector<T> values;
  scan->Punctuation('[');
  if (scan->TryPunctuation(']')) return values;
  do {
    values.push_back(ParseValue<T>(scan));
  } while (scan->TryPunctuation(','));
  scan->Punctuation(']');
  return values;
}

// Tries the types one after the other at compile time, so that a type added to the variant needs
// no line here.
template <size_t... kTypes>
std::optional<Attribute> ValueOfType(TextScanner* scan, std::string_view type,
                                     std::index_sequence<kTypes...>) {
  std::optional<Attribute> value;
  (void)((AttrTypeName(static_cast<AttrType>(kTypes)) == type &&
          (value = ParseValue<std::variant_alternative_t<kTypes, AttributeVariant>>(scan), true)) ||
         ...);
  return value;
}

// Reads the name of a type, then a value.
Attribute ParseTypedValue(TextScanner* scan) {
  const size_t start = scan->position();
  const std::string_view type = scan->AnyWord("the type of an attribute");
  std::optional<Attribute> value = ValueOfType(scan, type, std::make_index_sequence<kAttrTypes>());
  if (!value) scan->ThrowAt(start, StrCat("there is no attribute type ", Quote(type)));
  return *std::move(value);
}

Attribute ParseAttribute(TextScanner* scan) {
  const std::string_view word = scan->PeekWord();
  if (word == "true" || word == "false") return ParseBool(scan);
  if (word == "inf" || word == "nan") return ParseValue<float>(scan);
  if (!word.empty()) return ParseTypedValue(scan);
  if (scan->Peek() == '"') return ParseValue<std::string>(scan);
  const std::string_view number = scan->PeekNumber();
  if (number.empty()) scan->ThrowExpected("the value of an attribute, or the name of its type");
  const bool is_float = number == "-inf" || number.find_first_of(".eE") != number.npos;
  return is_float ? Attribute(ParseValue<float>(scan)) : Attribute(ParseValue<int32_t>(scan));
}

}  // namespace

AttributeMap ParseAttributes(TextScanner* scan) {
  AttributeMap attrs;
  scan->Punctuation('{');
  if (scan->TryPunctuation('}')) return attrs;
  do {
    const size_t start = scan->position();
    std::string name = scan->Name("the name of an attribute");
    scan->Punctuation('=');
    const bool added = attrs.emplace(name, ParseAttribute(scan)).second;
    if (!added) scan->ThrowAt(start, StrCat("attribute ", Quote(name), " is there twice"));
  } while (scan->TryPunctuation(','));
  scan->Punctuation('}');
  return attrs;
}

DType ParseDType(TextScanner* scan) {
  const size_t start = scan->position();
  const std::string_view word = scan->AnyWord("a dtype");
  try {
    return DTypeFromName(word);
  } catch (const Error& error) {
    scan->ThrowAt(start, error.what());
  }
}

std::vector<int64_t> ParseIntegers(TextScanner* scan) { return ParseList<int64_t>(scan); }

// A copy of the scanner is a position in the text: looking ahead costs nothing more.
bool IsOpNext(TextScanner scan) {
  scan.Punctuation('{');
  if (scan.TryPunctuation('}')) return scan.Peek() == '=';
  scan.Name("a name");
  return scan.Peek() == ':';
}

}  // namespace skiff
