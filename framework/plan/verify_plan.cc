#include "framework/plan/verify_plan.h"

#include <map>
#include <string>
#include <utility>

#include "framework/base/error.h"

namespace skiff {
namespace {

class PlanVerifier {
 public:
  explicit PlanVerifier(const Plan& plan) : plan_(plan), is_written_(plan.values.size(), false) {}

  std::vector<std::string> Run() {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const Instruction& instruction = plan_.instructions[i];
      where_ = StrCat("instruction ", i);
      if (instruction.op == nullptr || instruction.def == nullptr) {
        Report("has no op");
        continue;
      }
      where_ += StrCat(" (", instruction.op->type, ")");
      if (!CheckCounts(instruction)) continue;
      for (size_t j = 0; j < instruction.inputs.size(); ++j) {
        if (instruction.inputs[j] >= 0 && instruction.reads_data[j]) Read(instruction.inputs[j]);
      }
      for (int32_t output : instruction.outputs) {
        if (output >= 0) Write(output);
      }
    }
    for (int32_t fetch : plan_.fetches) {
      where_ = "fetch";
      Read(fetch);
    }
    return std::move(messages_);
  }

 private:
  const PlanValue& ValueOf(int32_t value) const { return plan_.values[static_cast<size_t>(value)]; }

  bool CheckCounts(const Instruction& instruction) {
    const bool is_copy = instruction.kind == InstructionKind::kCopy;
    const size_t inputs = is_copy ? 1 : InputOrder(*instruction.def, *instruction.op).size();
    const size_t outputs = is_copy ? 1 : OutputOrder(*instruction.def, *instruction.op).size();
    if (instruction.inputs.size() == inputs && instruction.outputs.size() == outputs &&
        instruction.reads_data.size() == inputs) {
      return true;
    }
    Report("has ", instruction.inputs.size(), " inputs, ", instruction.reads_data.size(),
           " marks of them and ", instruction.outputs.size(), " outputs; its op has ", inputs,
           " and ", outputs, " arguments");
    return false;
  }

  void Read(int32_t value) {
    if (ValueOf(value).storage == Storage::kArena && !is_written_[static_cast<size_t>(value)]) {
      Report("reads ", Name(value), " before anything writes it");
      return;
    }
    const auto holder = holder_.try_emplace(StorageKey(value), value).first;
    if (holder->second != value) {
      Report("reads ", Name(value), ", whose storage holds ", Name(holder->second), " by now");
    }
  }

  void Write(int32_t value) {
    if (ValueOf(value).storage == Storage::kFeed) Report("writes the feed ", Name(value));
    if (is_written_[static_cast<size_t>(value)]) Report("writes ", Name(value), " again");
    is_written_[static_cast<size_t>(value)] = true;
    holder_[StorageKey(value)] = value;
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
