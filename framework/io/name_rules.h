// Applies rules that give tensors other names.
#pragma once

#include <string>
#include <vector>

#include "framework/io/api/name_rules.h"

namespace skiff {

// What rules make of a name.
struct RuledName {
  std::string name;
  bool transpose = false;
  bool drop = false;
  bool tie = false;
};

// Returns what the rules make of each name, one after the other: a rule sees the name that the
// rules before it have made. A name that no rule matches stays as it is, and so does a dropped one.
// Two transpositions undo each other. Throws an Error (kInvalidArgument) for a pattern that is no
// regular expression, and for a name of more than 1,000 bytes.
std::vector<RuledName> ApplyRules(const std::vector<NameRule>& rules,
                                  const std::vector<std::string>& names);

// Reads rules without a change: REGEX=TO;REGEX=TO;… The last equals sign of each counts. Throws an
// Error (kInvalidArgument) for a part without one, or without an expression.
std::vector<NameRule> ParseNameRules(const std::string& text);

}  // namespace skiff
