// The parts of the text format of programs.
#pragma once

#include <string>

#include "framework/ir/api/text.h"
#include "framework/ir/program.h"

namespace skiff {

// Return one line, without a line break at its end.
std::string PrintAttribute(const Attribute& attribute);
std::string PrintAttributes(const AttributeMap& attributes);
std::string PrintOp(const Op& op);

}  // namespace skiff
