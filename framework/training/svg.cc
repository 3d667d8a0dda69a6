#include "framework/training/svg.h"

#include "framework/base/number_text.h"

namespace skiff {

std::string SvgText(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else {
      result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return result;
}

std::string SvgNumber(double value) { return FormatGeneral(value, 6); }

}  // namespace skiff
