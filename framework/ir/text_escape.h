// Names and strings as the text form and the DOT form write them. Internal to framework/ir.
#pragma once

#include <string>
#include <string_view>

namespace skiff {

// Whether a name may stand without quotes.
bool IsBareName(std::string_view name);
bool IsBareNameStart(char character);
bool IsBareNamePart(char character);

// The string in quotes, on one line, in printable ASCII.
std::string Quote(std::string_view text);

// The name, in quotes where it needs them.
std::string NameText(std::string_view name);

}  // namespace skiff
