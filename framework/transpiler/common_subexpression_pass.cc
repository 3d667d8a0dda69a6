#include "framework/transpiler/common_subexpression_pass.h"

#include <algorithm>
#include <map>
#include <numeric>
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

// Attributes that the definition lists, by value or default; others must be the same, too, lest a
// kernel reads one.
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
  return a.shape == b.shape && a.dtype == b.dtype && a.lod_level == b.lod_level &&
         a.layout == b.layout;
}

class Merging {
 public:
  explicit Merging(Plan* plan)
      : plan_(*plan), last_(LastReads(*plan)), merged_(plan->values.size()) {
    std::iota(merged_.begin(), merged_.end(), 0);
  }

  int64_t Run() {
    std::vector<Instruction> kept;
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      Instruction& instruction = plan_.instructions[i];
      for (int32_t& input : instruction.inputs) input = Resolve(input);
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
    for (int32_t& fetch : plan_.fetches) fetch = Resolve(fetch);
    const auto dropped = static_cast<int64_t>(plan_.instructions.size() - kept.size());
    plan_.instructions = std::move(kept);
    return dropped;
  }

 private:
  int32_t Resolve(int32_t value) const {
    return value < 0 ? value : merged_[static_cast<size_t>(value)];
  }

  const PlanValue& ValueOf(int32_t value) const { return plan_.values[static_cast<size_t>(value)]; }

  bool MayMerge(const Instruction& instruction) const {
    if (instruction.def->random || MustStay(instruction)) return false;
    return std::ranges::all_of(instruction.outputs, [&](int32_t output) {
      return output < 0 ||
             (ValueOf(output).storage == Storage::kArena && ValueOf(output).alias_of < 0 &&
              std::ranges::count(plan_.memory.checkpoints, ValueOf(output).name) == 0);
    });
  }

  // Whether the results of `first` stand for those of `second`, at `position`, at no cost in
  // memory.
  bool Replaces(const Instruction& first, const Instruction& second, int64_t position) const {
    if (!SameAttributesFor(*second.def, *first.op, *second.op)) return false;
    if (first.outputs.size() != second.outputs.size()) return false;
    for (size_t i = 0; i < second.outputs.size(); ++i) {
      const int32_t wanted = second.outputs[i];
      if (wanted < 0) continue;
      const int32_t there = first.outputs[i];
      if (there < 0 || !SameMeta(ValueOf(there).meta, ValueOf(wanted).meta)) return false;
      const bool needed = last_[static_cast<size_t>(wanted)] >= 0;
      const bool lives = last_[static_cast<size_t>(there)] >= position;
      const bool cheap = StorageBytes(ValueOf(there)) <= CommonSubexpressionPass::kCheapBytes;
      if (needed && !lives && !cheap) return false;
    }
    return true;
  }

  void Redirect(const std::vector<int32_t>& from, const std::vector<int32_t>& to) {
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] < 0) continue;
      const auto old_value = static_cast<size_t>(from[i]);
      const auto new_value = static_cast<size_t>(to[i]);
      merged_[old_value] = to[i];
      last_[new_value] = std::max(last_[new_value], last_[old_value]);
    }
  }

  Plan& plan_;
  std::vector<int64_t> last_;
  std::vector<int32_t> merged_;  // by value: the one that stands for it
  // What was computed so far, as indices of kept instructions. Attributes are compared one by one.
  std::map<std::tuple<InstructionKind, const OpDef*, std::vector<int32_t>>, std::vector<size_t>>
      known_;
};

}  // namespace

PassReport CommonSubexpressionPass::Apply(const OpRegistry&, Plan* plan) const {
  const int64_t dropped = Merging(plan).Run();
  return {.pass = {},
          .changes = dropped,
          .summary = StrCat(dropped, " instructions computed what is there already")};
}

}  // namespace skiff
