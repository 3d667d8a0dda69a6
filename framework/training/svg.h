// Pieces of SVG pictures.
#pragma once

#include <string>
#include <string_view>

namespace skiff {

// Text between tags or in an attribute: escaped; control characters, which XML can't hold, become
// spaces.
std::string SvgText(std::string_view text);

// Short, and without exponents for the numbers that pictures have.
std::string SvgNumber(double value);

}  // namespace skiff
