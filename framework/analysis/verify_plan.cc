// Simulates a run on symbolic contents. content_ says whose elements a value has (a view has those
// of the value that it shows), and holder_ says what each storage holds at the moment. A read is
// right if the storage holds the content that the value should have. This finds every wrong reuse
// of storage by alias_of, whatever pass made it. Reuse by offsets is the planner's business.
#include "framework/analysis/verify_plan.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include "framework/analysis/contiguous_values.h"
#include "framework/analysis/op_aliasing.h"
#include "framework/analysis/stream_waits.h"
#include "framework/base/error.h"
#include "framework/plan/loop.h"

namespace skiff {
namespace {

class PlanVerifier {
 public:
  explicit PlanVerifier(const Plan& plan)
      : plan_(plan), is_written_(plan.values.size(), false), content_(plan.values.size()) {
    for (const ValueId value : plan.ids()) content_[value] = value;
  }

  std::vector<std::string> Run() {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const Instruction& instruction = plan_.instructions[i];
      where_ = StrCat("instruction ", i);
      if (instruction.op == nullptr || instruction.def == nullptr) {
        Report("has no op");
        continue;
      }
      where_ += StrCat(" (", instruction.Name(), ")");
      if (instruction.kind == InstructionKind::kFused) CheckMembers(instruction);
      if (instruction.kind == InstructionKind::kLoop) CheckLinks(instruction);
      if (!CheckCounts(instruction)) continue;
      for (size_t j = 0; j < instruction.inputs.size(); ++j) {
        if (instruction.inputs[j] && instruction.reads_data[j]) Read(instruction.inputs[j]);
      }
      for (size_t j = 0; j < instruction.outputs.size(); ++j) {
        if (instruction.outputs[j]) Write(instruction, static_cast<int>(j));
      }
    }
    for (ValueId fetch : plan_.fetches) {
      where_ = "fetch";
      Read(fetch);
    }
    if (messages_.empty()) messages_ = StreamMistakes(plan_);
    if (messages_.empty()) CheckContiguous();
    return std::move(messages_);
  }

 private:
  const PlanValue& ValueOf(ValueId value) const { return plan_[value]; }

  // The executor indexes values by the op's arguments, so both must have the same number.
  bool CheckCounts(const Instruction& instruction) {
    size_t inputs = 1;
    size_t outputs = 1;
    if (instruction.kind == InstructionKind::kOp) {
      inputs = InputOrder(*instruction.def, *instruction.op).size();
      outputs = OutputOrder(*instruction.def, *instruction.op).size();
    } else if (instruction.kind != InstructionKind::kCopy) {
      // CheckMembers checks these, CheckLinks those of a loop.
      inputs = instruction.reads_data.size();
      outputs = instruction.outputs.size();
    }
    if (instruction.inputs.size() == inputs && instruction.outputs.size() == outputs &&
        instruction.reads_data.size() == inputs) {
      return true;
    }
    Report("has ", instruction.inputs.size(), " inputs, ", instruction.reads_data.size(),
           " marks of them and ", instruction.outputs.size(), " outputs; its op has ", inputs,
           " and ", outputs, " arguments");
    return false;
  }

  // Checks that each member reads inputs of the instruction or results of earlier members, and that
  // members write all outputs.
  void CheckMembers(const Instruction& fused) {
    std::unordered_set<ValueId> there(fused.inputs.begin(), fused.inputs.end());
    std::unordered_set<ValueId> written;
    for (const Instruction& member : fused.members) {
      if (!CheckCounts(member)) continue;
      for (size_t j = 0; j < member.inputs.size(); ++j) {
        const ValueId input = member.inputs[j];
        if (input && member.reads_data[j] && !there.contains(input)) {
          Report(member.op->type, " reads ", Name(input), ", which isn't handed to it");
        }
      }
      there.insert(member.outputs.begin(), member.outputs.end());
      written.insert(member.outputs.begin(), member.outputs.end());
    }
    for (ValueId output : fused.outputs) {
      if (!written.contains(output)) Report("has the output ", Name(output), " of no member");
    }
  }

  // Checks that each link of a loop names an input or output that the instruction has.
  void CheckLinks(const Instruction& instruction) {
    const Loop& loop = *instruction.loop;
    const auto check = [&](int index, const std::vector<ValueId>& values, const char* what) {
      if (index < static_cast<int>(values.size())) return;
      Report("links ", what, " ", index, " to its body and has ", values.size());
    };
    const auto check_input = [&](int index) { check(index, instruction.inputs, "input"); };
    const auto check_output = [&](int index) { check(index, instruction.outputs, "output"); };
    for (const LoopFeed& feed : loop.feeds) {
      check_input(feed.input);
      check_output(feed.stack);
    }
    for (const LoopFetch& fetch : loop.fetches) {
      check_input(fetch.input);
      check_output(fetch.output);
    }
    for (const LoopScopeValue& variable : loop.scope_values) {
      variable.is_output ? check_output(variable.index) : check_input(variable.index);
    }
    check_input(loop.condition_input);
    check_input(loop.count_input);
    check_output(loop.count_output);
  }

  void Read(ValueId value) {
    if (ValueOf(value).storage == Storage::kArena && !is_written_[value]) {
      Report("reads ", Name(value), " before anything writes it");
      return;
    }
    // A feed or scope storage holds the value that is read from it first, until something writes
    // it.
    const auto holder = holder_.try_emplace(StorageKey(value), value).first;
    if (holder->second != content_[value]) {
      Report("reads ", Name(value), ", whose storage holds ", Name(holder->second), " by now");
    }
  }

  void Write(const Instruction& instruction, int output) {
    const ValueId value = instruction.outputs[static_cast<size_t>(output)];
    if (ValueOf(value).storage == Storage::kFeed) Report("writes the feed ", Name(value));
    if (is_written_[value]) Report("writes ", Name(value), " again");
    is_written_[value] = true;
    // A view in the same storage doesn't change its content.
    for (const auto& [from, to] : ViewPairs(plan_, instruction)) {
      const ValueId viewed = instruction.inputs[static_cast<size_t>(from)];
      if (to == output && viewed && plan_.StorageOf(viewed) == plan_.StorageOf(value)) {
        content_[value] = content_[viewed];
      }
    }
    holder_[StorageKey(value)] = content_[value];
  }

  void CheckContiguous() {
    where_ = "contiguous values";
    try {
      for (const std::vector<ContiguousSlice>& slices : ContiguousSlices(plan_)) {
        for (const ContiguousSlice& slice : slices) CheckDistance(slices[0], slice);
      }
    } catch (const Error& error) {
      Report(error.what());
    }
  }

  void CheckDistance(const ContiguousSlice& first, const ContiguousSlice& slice) {
    const int64_t base = ValueOf(first.root).offset;
    const int64_t offset = ValueOf(slice.root).offset;
    if (base < 0 || offset < 0 || offset - base == slice.offset) return;
    Report(Name(slice.root), " is at ", offset, ": expected ", slice.offset, " bytes after ",
           Name(first.root), " at ", base);
  }

  // Values with equal keys share storage: a scope variable, or a root in the arena.
  std::pair<std::string, ValueId> StorageKey(ValueId value) const {
    const ValueId root = plan_.StorageOf(value);
    if (ValueOf(root).storage == Storage::kScope) return {ValueOf(root).name, ValueId()};
    return {"", root};
  }

  std::string Name(ValueId value) const {
    return StrCat("\"", ValueOf(value).name, "\" (", value, ")");
  }

  template <typename... Args>
  void Report(const Args&... args) {
    messages_.push_back(StrCat(where_, ": ", args...));
  }

  const Plan& plan_;
  ValueTable<bool> is_written_;
  ValueTable<ValueId> content_;  // the one whose elements it has: a view has another's
  std::map<std::pair<std::string, ValueId>, ValueId> holder_;  // the value that a storage holds
  std::string where_;
  std::vector<std::string> messages_;
};

}  // namespace

std::vector<std::string> VerifyPlan(const Plan& plan) { return PlanVerifier(plan).Run(); }

void CheckPlan(const Plan& plan) {
  const std::vector<std::string> messages = VerifyPlan(plan);
  SKIFF_ENFORCE(messages.empty(), kInvalidArgument, Join(messages, "\n"));
}

}  // namespace skiff
