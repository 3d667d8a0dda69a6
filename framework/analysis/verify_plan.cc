#include "framework/analysis/verify_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <unordered_set>
#include <utility>

#include "framework/analysis/aliasing.h"
#include "framework/analysis/contiguous_values.h"
#include "framework/base/error.h"

namespace skiff {
namespace {

class PlanVerifier {
 public:
  explicit PlanVerifier(const Plan& plan)
      : plan_(plan), is_written_(plan.values.size(), false), content_(plan.values.size()) {
    std::iota(content_.begin(), content_.end(), 0);
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
      if (!instruction.members.empty()) CheckMembers(instruction);
      if (!CheckCounts(instruction)) continue;
      for (size_t j = 0; j < instruction.inputs.size(); ++j) {
        if (instruction.inputs[j] >= 0 && instruction.reads_data[j]) Read(instruction.inputs[j]);
      }
      for (size_t j = 0; j < instruction.outputs.size(); ++j) {
        if (instruction.outputs[j] >= 0) Write(instruction, static_cast<int>(j));
      }
    }
    for (int32_t fetch : plan_.fetches) {
      where_ = "fetch";
      Read(fetch);
    }
    if (messages_.empty()) CheckContiguous();
    return std::move(messages_);
  }

 private:
  const PlanValue& ValueOf(int32_t value) const { return plan_.values[static_cast<size_t>(value)]; }

  bool CheckCounts(const Instruction& instruction) {
    size_t inputs = 1;
    size_t outputs = 1;
    if (instruction.kind == InstructionKind::kOp) {
      inputs = InputOrder(*instruction.def, *instruction.op).size();
      outputs = OutputOrder(*instruction.def, *instruction.op).size();
    } else if (!instruction.members.empty()) {
      // As many as its members leave: CheckMembers.
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

  // What members read must be an input or written by an earlier member, and outputs by one of them.
  void CheckMembers(const Instruction& fused) {
    std::unordered_set<int32_t> there(fused.inputs.begin(), fused.inputs.end());
    std::unordered_set<int32_t> written;
    for (const Instruction& member : fused.members) {
      if (!CheckCounts(member)) continue;
      for (size_t j = 0; j < member.inputs.size(); ++j) {
        const int32_t input = member.inputs[j];
        if (input >= 0 && member.reads_data[j] && !there.contains(input)) {
          Report(member.op->type, " reads ", Name(input), ", which isn't handed to it");
        }
      }
      there.insert(member.outputs.begin(), member.outputs.end());
      written.insert(member.outputs.begin(), member.outputs.end());
    }
    for (int32_t output : fused.outputs) {
      if (!written.contains(output)) Report("has the output ", Name(output), " of no member");
    }
  }

  void Read(int32_t value) {
    if (ValueOf(value).storage == Storage::kArena && !is_written_[static_cast<size_t>(value)]) {
      Report("reads ", Name(value), " before anything writes it");
      return;
    }
    const auto holder = holder_.try_emplace(StorageKey(value), value).first;
    if (holder->second != content_[static_cast<size_t>(value)]) {
      Report("reads ", Name(value), ", whose storage holds ", Name(holder->second), " by now");
    }
  }

  void Write(const Instruction& instruction, int output) {
    const int32_t value = instruction.outputs[static_cast<size_t>(output)];
    if (ValueOf(value).storage == Storage::kFeed) Report("writes the feed ", Name(value));
    if (is_written_[static_cast<size_t>(value)]) Report("writes ", Name(value), " again");
    is_written_[static_cast<size_t>(value)] = true;
    // A view of what lies there leaves it as it is.
    for (const auto& [from, to] : ViewPairs(plan_, instruction)) {
      const int32_t viewed = instruction.inputs[static_cast<size_t>(from)];
      if (to == output && viewed >= 0 && plan_.StorageOf(viewed) == plan_.StorageOf(value)) {
        content_[static_cast<size_t>(value)] = content_[static_cast<size_t>(viewed)];
      }
    }
    holder_[StorageKey(value)] = content_[static_cast<size_t>(value)];
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
    Report(Name(slice.root), " lies at ", offset, ": expected ", slice.offset, " bytes behind ",
           Name(first.root), " at ", base);
  }

  // Values with equal keys lie in one storage: a variable of the scope, or a root in the arena.
  std::pair<std::string, int32_t> StorageKey(int32_t value) const {
    const int32_t root = plan_.StorageOf(value);
    if (ValueOf(root).storage == Storage::kScope) return {ValueOf(root).name, -1};
    return {"", root};
  }

  std::string Name(int32_t value) const {
    return StrCat("\"", ValueOf(value).name, "\" (#", value, ")");
  }

  template <typename... Args>
  void Report(const Args&... args) {
    messages_.push_back(StrCat(where_, ": ", args...));
  }

  const Plan& plan_;
  std::vector<bool> is_written_;
  std::vector<int32_t> content_;  // by value, the one whose elements it has: a view has another's
  std::map<std::pair<std::string, int32_t>, int32_t> holder_;  // the value that a storage holds
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
