#include "framework/transpiler/fusion_list.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "framework/base/error.h"
#include "framework/transpiler/fusion_check.h"

namespace skiff {
namespace {

// Finds the instructions of a pattern.
class Matcher {
 public:
  Matcher(const std::vector<Op>& pattern, Match* match)
      : pattern_(pattern), is_found_(pattern.size(), false), match_(*match) {}

  bool Run(size_t last) {
    bool fits = Take(pattern_.size() - 1, last);
    while (fits && match_.instructions.size() < pattern_.size()) fits = TakeNext();
    return fits;
  }

 private:
  // Takes one more instruction that writes or reads a value which is known. Writers come first,
  // since there is no choice between several.
  bool TakeNext() {
    for (size_t k = 0; k < pattern_.size(); ++k) {
      if (is_found_[k]) continue;
      for (const std::string& name : pattern_[k].OutputNames()) {
        if (match_[name]) return Take(k, match_.rewrite.WriterOf(match_[name]));
      }
    }
    for (size_t k = 0; k < pattern_.size(); ++k) {
      if (is_found_[k]) continue;
      for (const std::string& name : pattern_[k].InputNames()) {
        if (!match_[name] || !match_.makers.contains(name)) continue;
        for (const size_t reader : match_.rewrite.ReadersOf(match_[name])) {
          if (Take(k, reader)) return true;
        }
      }
    }
    return false;
  }

  // Takes instruction i for op k of the pattern if it fits.
  bool Take(size_t k, size_t i) {
    const Op& op = pattern_[k];
    if (i >= match_.plan.instructions.size() || !match_.rewrite.Is(i, op.type) ||
        match_.instructions.contains(i)) {
      return false;
    }
    const Instruction& instruction = match_.plan.instructions[i];
    std::map<std::string, ValueId> values = match_.values;
    const auto bind = [&](const Slots& slots, auto arguments_in, auto value_in) {
      for (const auto& [slot, names] : slots) {
        const size_t count = ((*instruction.op).*arguments_in)(slot).size();
        if (count != 0 && count != names.size()) return false;
        for (size_t n = 0; n < names.size(); ++n) {
          const ValueId value = (instruction.*value_in)(slot, n);
          if (values.emplace(names[n], value).first->second != value) return false;
        }
      }
      return true;
    };
    const bool has_attrs = std::ranges::all_of(op.attrs, [&](const auto& attr) {
      const AttrDef* def = instruction.def->FindAttr(attr.first);
      return def != nullptr && SameAttribute(*EffectiveAttr(*instruction.op, *def), attr.second);
    });
    if (!has_attrs || !bind(op.inputs, &Op::Input, &Instruction::InputIn) ||
        !bind(op.outputs, &Op::Output, &Instruction::OutputIn)) {
      return false;
    }
    match_.values = std::move(values);
    for (const std::string& name : op.OutputNames()) match_.makers.emplace(name, i);
    match_.instructions.insert(i);
    is_found_[k] = true;
    return true;
  }

  const std::vector<Op>& pattern_;
  std::vector<bool> is_found_;  // by op of the pattern
  Match& match_;
};

class Application {
 public:
  Application(const PassContext& context, Plan* plan)
      : registry_(context.registry), plan_(*plan), rewrite_(context, plan) {
    for (size_t i = 0; i < plan->instructions.size(); ++i) {
      by_type_[plan->instructions[i].op->type].push_back(i);
    }
  }

  void Apply(const Fusion& fusion) {
    const bool has_ops = std::ranges::all_of(fusion.after, [&](const FusedOp& fused) {
      return registry_.Find(fused.op.ops[0].type) != nullptr;
    });
    const auto last = by_type_.find(fusion.before.ops.back().type);
    if (!has_ops || last == by_type_.end()) return;
    for (const size_t i : last->second) {
      Match match{.plan = plan_, .rewrite = rewrite_};
      if (Matcher(fusion.before.ops, &match).Run(i)) TryReplace(fusion, std::move(match));
    }
  }

  int64_t Finish() { return rewrite_.Apply(); }

 private:
  void TryReplace(const Fusion& fusion, Match match) {
    Replacement replacement{.dropped = match.instructions};
    const size_t op_count = plan_.made_ops.size();
    if (!fusion.gradient_of.empty()) {
      const Match* forward = ForwardOf(match, fusion.gradient_of);
      if (forward == nullptr) return;
      replacement.forward = forward->instructions;
      match.values.insert(forward->values.begin(), forward->values.end());
      match.makers.insert(forward->makers.begin(), forward->makers.end());
    }
    if (fusion.condition && !fusion.condition(match)) return;
    for (const auto& [value, other] : fusion.instead) {
      if (match[value] && !match[other]) return;
      if (match[value]) replacement.instead[match[value]] = match[other];
    }
    for (const FusedOp& fused : fusion.after) {
      replacement.made.emplace(match.makers.at(fused.at), Make(fused, match));
    }
    if (rewrite_.TryReplace(std::move(replacement))) {
      applied_.push_back(std::move(match));
    } else {
      plan_.made_ops.resize(op_count);
    }
  }

  // Returns the fusion whose gradient the match is, or null.
  const Match* ForwardOf(const Match& gradient, const std::string& name) const {
    const auto is_forward = [&](const Match& forward) {
      return gradient[name] && forward[name] == gradient[name] &&
             std::ranges::all_of(gradient.values, [&](const auto& named) {
               const auto same = forward.values.find(named.first);
               return same == forward.values.end() || same->second == named.second;
             });
    };
    const auto found = std::ranges::find_if(applied_, is_forward);
    return found == applied_.end() ? nullptr : &*found;
  }

  Instruction Make(const FusedOp& fused, const Match& match) {
    const Op& op = fused.op.ops[0];
    const OpDef& def = registry_.Get(op.type);
    const std::string& origin = fused.origin.empty() ? fused.at : fused.origin;
    return MakeInstruction(
        &plan_, def, match.MakerOf(origin), AttrsOf(fused, def, match),
        Arguments(fused, op.inputs, def.inputs, &Op::Input, &Instruction::InputIn, match),
        Arguments(fused, op.outputs, def.outputs, &Op::Output, &Instruction::OutputIn, match));
  }

  SlotValues Arguments(const FusedOp& fused, const Slots& named, const std::vector<SlotDef>& slots,
                       const std::vector<std::string>& (Op::*arguments_in)(std::string_view) const,
                       ValueId (Instruction::*value_in)(std::string_view, size_t) const,
                       const Match& match) const {
    SlotValues values;
    for (const auto& [slot, names] : named) {
      for (const std::string& name : names) {
        const bool is_left_out = std::ranges::count(fused.if_read, name) > 0 &&
                                 rewrite_.MayVanish(match[name], match.instructions);
        values.emplace_back(slot, is_left_out ? ValueId() : match[name]);
      }
    }
    if (fused.arguments_of.empty()) return values;
    const Instruction& from = match.MakerOf(fused.arguments_of);
    for (const SlotDef& slot : slots) {
      const bool is_named = std::ranges::count(named, slot.name, &SlotArguments::slot) > 0;
      if (is_named) continue;
      const size_t count = ((*from.op).*arguments_in)(slot.name).size();
      for (size_t i = 0; i < count; ++i) {
        values.emplace_back(slot.name, (from.*value_in)(slot.name, i));
      }
    }
    return values;
  }

  static AttributeMap AttrsOf(const FusedOp& fused, const OpDef& def, const Match& match) {
    AttributeMap attrs = fused.op.ops[0].attrs;
    if (fused.attributes) attrs.merge(fused.attributes(match));
    for (const std::string& output : fused.attributes_of) {
      const Instruction& from = match.MakerOf(output);
      for (const AttrDef& attr : from.def->attrs) {
        if (def.FindAttr(attr.name) == nullptr) continue;
        attrs.emplace(attr.name, *EffectiveAttr(*from.op, attr));
      }
    }
    return attrs;
  }

  const OpRegistry& registry_;
  Plan& plan_;
  PlanRewrite rewrite_;
  std::unordered_map<std::string_view, std::vector<size_t>> by_type_;  // instructions
  std::vector<Match> applied_;
};

}  // namespace

const std::vector<Fusion>& FusionList::CheckedFor(const OpRegistry& registry) const {
  if (checked_for_ != &registry) {
    CheckFusions(registry, fusions_);
    checked_for_ = &registry;
  }
  return fusions_;
}

PassReport ApplyFusions(const PassContext& context, const FusionList& fusions, Plan* plan) {
  const std::vector<Fusion>& checked = fusions.CheckedFor(context.registry);
  Application application(context, plan);
  for (const Fusion& fusion : checked) application.Apply(fusion);
  const int64_t made = application.Finish();
  return {.pass = {}, .changes = made, .summary = StrCat(made, " instructions fused")};
}

}  // namespace skiff
