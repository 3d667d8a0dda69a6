#include "framework/command_line/argument_text.h"

#include <sstream>
#include <string_view>

#include "framework/base/error.h"

namespace skiff {

std::vector<std::string> SplitNames(const std::string& names) {
  std::vector<std::string> parts;
  std::istringstream stream(names);
  for (std::string part; std::getline(stream, part, ',');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

std::string ShellCommand(const std::vector<std::string>& arguments) {
  // Characters that no shell treats specially; everything else goes into single quotes.
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  std::vector<std::string> quoted;
  for (const std::string& argument : arguments) {
    if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) {
      quoted.push_back(argument);
      continue;
    }
    std::string text = "'";
    for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    quoted.push_back(text + "'");
  }
  return Join(quoted, " ");
}

}  // namespace skiff
