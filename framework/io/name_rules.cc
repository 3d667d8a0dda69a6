#include "framework/io/name_rules.h"

#include <regex>
#include <sstream>

#include "framework/base/error.h"

namespace skiff {
namespace {

// Matching takes a call of the library for each byte.
constexpr size_t kLongestName = 1000;

class CompiledRule {
 public:
  explicit CompiledRule(const NameRule& rule) : rule_(rule), pattern_(Compile(rule.pattern)) {}

  // Changes the name if it matches.
  void Apply(RuledName* ruled) const {
    std::smatch match;
    if (!std::regex_match(ruled->name, match, pattern_)) return;
    if (rule_.change == NameChange::kDrop) {
      ruled->drop = true;
      return;
    }
    ruled->name = match.format(rule_.to);
    if (rule_.change == NameChange::kTranspose) ruled->transpose = !ruled->transpose;
    if (rule_.change == NameChange::kTie) ruled->tie = true;
  }

 private:
  static std::regex Compile(const std::string& pattern) {
    try {
      return std::regex(pattern, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error& error) {
      Throw(ErrorCode::kInvalidArgument, "\"", pattern,
            "\" is no regular expression: ", error.what());
    }
  }

  const NameRule& rule_;
  std::regex pattern_;
};

RuledName Ruled(const std::vector<CompiledRule>& rules, const std::string& name) {
  SKIFF_ENFORCE(name.size() <= kLongestName, kInvalidArgument, "a tensor's name has ", name.size(),
                " bytes, expected at most ", kLongestName);
  RuledName ruled{.name = name};
  for (const CompiledRule& rule : rules) {
    if (!ruled.drop) rule.Apply(&ruled);
  }
  return ruled;
}

}  // namespace

std::vector<RuledName> ApplyRules(const std::vector<NameRule>& rules,
                                  const std::vector<std::string>& names) {
  const std::vector<CompiledRule> compiled(rules.begin(), rules.end());
  std::vector<RuledName> ruled;
  for (const std::string& name : names) ruled.push_back(Ruled(compiled, name));
  return ruled;
}

std::vector<NameRule> ParseNameRules(const std::string& text) {
  std::vector<NameRule> rules;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ';');) {
    const size_t equals = part.rfind('=');
    SKIFF_ENFORCE(equals != std::string::npos && equals > 0, kInvalidArgument,
                  "a rule for names: found \"", part, "\", expected REGEX=TO");
    rules.push_back({.pattern = part.substr(0, equals), .to = part.substr(equals + 1)});
  }
  return rules;
}

}  // namespace skiff
