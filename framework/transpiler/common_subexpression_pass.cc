#include "framework/transpiler/common_subexpression_pass.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/analysis/dependencies.h"
#include "framework/analysis/liveness.h"
#include "framework/base/error.h"

namespace skiff {
namespace {

// Fluid's notes on an op, which no kernel reads: op_role, op_namescope, op_device, …
bool IsNote(const std::string& name) { return name.starts_with("op_"); }

// Compares the attributes that the definition lists, by value or default. Others must be equal,
// too, in case a kernel reads one.
bool SameAttributesFor(const OpDef& def, const Op& a, const Op& b) {
  const bool listed = std::ranges::all_of(def.attrs, [&](const AttrDef& attr) {
    const Attribute* of_a = EffectiveAttr(a, attr);
    const Attribute* of_b = EffectiveAttr(b, attr);
    if (of_a == nullptr || of_b == nullptr) return of_a == of_b;
    return SameAttribute(*of_a, *of_b);
  });
  const auto has_unlisted_of = [&](const Op& one, const Op& other) {
    return std::ranges::all_of(one.attrs, [&](const auto& attr) {
      if (IsNote(attr.first) || def.FindAttr(attr.first) != nullptr) return true;
      const auto it = other.attrs.find(attr.first);
      return it != other.attrs.end() && SameAttribute(it->second, attr.second);
    });
  };
  return listed && has_unlisted_of(a, b) && has_unlisted_of(b, a);
}

bool SameMeta(const TensorMeta& a, const TensorMeta& b) {
  return a.shape == b.shape && a.dtype == b.dtype && a.lod_level == b.lod_level && a.lod == b.lod &&
         a.layout == b.layout;
}

// Value numbering in one pass, in order. Inputs are first replaced by the values that they were
// merged into (Resolve), so that equal expressions over merged values are found as well. known_
// then finds earlier instructions with the same op and inputs; only attributes are left to compare.
class Merging {
 public:
  explicit Merging(Plan* plan)
      : plan_(*plan),
        last_(LastReads(*plan)),
        merged_(plan->values.size()),
        is_aliased_(plan->values.size(), false) {
    for (const ValueId value : plan->ids()) {
      merged_[value] = value;
      if (ValueOf(value).alias_of) is_aliased_[plan->StorageOf(value)] = true;
    }
  }

  int64_t Run() {
    std::vector<Instruction> kept;
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      Instruction& instruction = plan_.instructions[i];
      for (ValueId& input : instruction.inputs) input = Resolve(input);
      if (!MayMerge(instruction)) {
        kept.push_back(std::move(instruction));
        continue;
      }
      std::vector<size_t>& alike = known_[{instruction.kind, instruction.def, instruction.inputs}];
      const auto first = std::ranges::find_if(alike, [&](size_t candidate) {
        return Replaces(kept[candidate], instruction, static_cast<int64_t>(i));
      });
      if (first != alike.end()) {
        Redirect(instruction.outputs, kept[*first].outputs);
        continue;
      }
      alike.push_back(kept.size());
      kept.push_back(std::move(instruction));
    }
    for (ValueId& fetch : plan_.fetches) fetch = Resolve(fetch);
    const auto dropped = static_cast<int64_t>(plan_.instructions.size() - kept.size());
    plan_.instructions = std::move(kept);
    return dropped;
  }

 private:
  ValueId Resolve(ValueId value) const { return value ? merged_[value] : value; }

  const PlanValue& ValueOf(ValueId value) const { return plan_[value]; }

  bool MayMerge(const Instruction& instruction) const {
    if (instruction.kind == InstructionKind::kLoop) return false;
    if (instruction.def->random || MustRunOnce(instruction)) return false;
    return std::ranges::all_of(instruction.outputs, [&](ValueId output) {
      // Another value changes what is stored there: a loop works on its copy of a variable.
      return !output || (ValueOf(output).storage == Storage::kArena && !ValueOf(output).alias_of &&
                         !is_aliased_[output] && !ValueOf(output).is_checkpoint);
    });
  }

  // Returns whether the results of `first` may replace those of `second`, at `position`, without
  // taking more memory.
  bool Replaces(const Instruction& first, const Instruction& second, int64_t position) const {
    if (!SameAttributesFor(*second.def, *first.op, *second.op)) return false;
    if (first.outputs.size() != second.outputs.size()) return false;
    for (size_t i = 0; i < second.outputs.size(); ++i) {
      const ValueId wanted = second.outputs[i];
      if (!wanted) continue;
      const ValueId there = first.outputs[i];
      if (!there || !SameMeta(ValueOf(there).meta, ValueOf(wanted).meta)) return false;
      if (ValueOf(there).place != ValueOf(wanted).place) return false;
      // If the first result is dead at `position`, keeping it longer would raise the live bytes in
      // between.
      const bool needed = last_[wanted] >= 0;
      const bool lives = last_[there] >= position;
      const bool cheap = StorageBytes(ValueOf(there)) <= CommonSubexpressionPass::kCheapBytes;
      if (needed && !lives && !cheap) return false;
    }
    return true;
  }

  void Redirect(const std::vector<ValueId>& from, const std::vector<ValueId>& to) {
    for (size_t i = 0; i < from.size(); ++i) {
      if (!from[i]) continue;
      merged_[from[i]] = to[i];
      // Whoever computes known contents anew needs those of all inputs.
      auto& contents = plan_[to[i]].meta.contents;
      if (contents == nullptr) contents = ValueOf(from[i]).meta.contents;
      // The result now lives longer, which makes more merges free of cost.
      last_[to[i]] = std::max(last_[to[i]], last_[from[i]]);
    }
  }

  Plan& plan_;
  ValueTable<int64_t> last_;
  ValueTable<ValueId> merged_;   // the value that replaces it, or itself
  ValueTable<bool> is_aliased_;  // by another value (PlanValue::alias_of)
  // Earlier instructions that may be merged with, as indices of kept ones. Attributes aren't part
  // of the key, since defaults may be spelled out or not.
  std::map<std::tuple<InstructionKind, const OpDef*, std::vector<ValueId>>, std::vector<size_t>>
      known_;
};

}  // namespace

PassReport CommonSubexpressionPass::Apply(const PassContext&, Plan* plan) const {
  const int64_t dropped = Merging(plan).Run();
  return {.pass = {},
          .changes = dropped,
          .summary = StrCat(dropped, " duplicate instructions dropped")};
}

}  // namespace skiff
