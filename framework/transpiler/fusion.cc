#include "framework/transpiler/fusion.h"

#include <algorithm>

#include "framework/base/error.h"
#include "framework/ir/text.h"

namespace skiff {

Pattern::Pattern(const std::string& text) {
  const auto program = ParseProgramText(StrCat("program { block 0 {\n", text, "\n} }"));
  SKIFF_ENFORCE(program->block_count() == 1 && !program->root()->ops().empty(), kInvalidArgument,
                "expected ops as a pattern, got \"", text, "\"");
  for (const std::unique_ptr<Op>& op : program->root()->ops()) ops.push_back(*op);
}

ValueId Match::operator[](const std::string& name) const {
  const auto found = values.find(name);
  return found == values.end() ? ValueId() : found->second;
}

const Instruction& Match::MakerOf(const std::string& name) const {
  return plan.instructions[makers.at(name)];
}

OpContext Match::ContextOfMaker(const std::string& name) const {
  return ContextOf(plan, MakerOf(name));
}

bool Match::HaveSameAttributes(const std::string& a, const std::string& b) const {
  const Op& op = *MakerOf(a).op;
  const Op& other = *MakerOf(b).op;
  return std::ranges::all_of(MakerOf(a).def->attrs, [&](const AttrDef& attr) {
    const Attribute* value = EffectiveAttr(op, attr);
    const Attribute* other_value = EffectiveAttr(other, attr);
    return value != nullptr && other_value != nullptr && SameAttribute(*value, *other_value);
  });
}

}  // namespace skiff
