// Names and strings as the text formats and DOT write them. Internal to framework/ir and
// framework/plan.
#pragma once

#include <string>
#include <string_view>

namespace skiff {

// IsBareName returns whether a name needs no quotes: whether its first character satisfies
// IsBareNameStart and all satisfy IsBareNamePart.
bool IsBareName(std::string_view name);
bool IsBareNameStart(char character);
bool IsBareNamePart(char character);

// Returns the string in quotes, escaped to one line of printable ASCII.
std::string Quote(std::string_view text);

// Returns the name, in quotes if quotes are necessary.
std::string NameText(std::string_view name);

}  // namespace skiff
