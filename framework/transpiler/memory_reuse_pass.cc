#include "framework/transpiler/memory_reuse_pass.h"

#include <algorithm>
#include <vector>

#include "framework/base/error.h"

namespace skiff {
namespace {

class InPlaceAssignment {
 public:
  explicit InPlaceAssignment(Plan* plan) : plan_(*plan), last_(LastReads(*plan)) {}

  int64_t Run() {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const Instruction& instruction = plan_.instructions[i];
      for (const auto& [from, to] : InPlacePairs(plan_, instruction)) {
        Share(instruction, static_cast<int64_t>(i), from, to);
      }
    }
    return shared_;
  }

 private:
  void Share(const Instruction& instruction, int64_t position, int from, int to) {
    const int32_t input = instruction.inputs[static_cast<size_t>(from)];
    const int32_t output = instruction.outputs[static_cast<size_t>(to)];
    const int32_t root = plan_.StorageOf(input);
    PlanValue& target = plan_.values[static_cast<size_t>(output)];
    const PlanValue& source = plan_.values[static_cast<size_t>(input)];
    const bool same_form = StorageBytes(source) == StorageBytes(target) &&
                           source.meta.dtype == target.meta.dtype &&
                           source.meta.layout == target.meta.layout;
    const bool skipped = MustBeAlone(source) || MustBeAlone(target) ||
                         MustBeAlone(plan_.values[static_cast<size_t>(root)]);
    const bool free = !skipped &&
                      plan_.values[static_cast<size_t>(root)].storage == Storage::kArena &&
                      target.storage == Storage::kArena && target.alias_of < 0 &&
                      LastReadOfStorage(root) == position && ReadsOfStorage(instruction, root) == 1;
    if (!same_form || !free) return;
    target.alias_of = input;
    last_[static_cast<size_t>(root)] =
        std::max(last_[static_cast<size_t>(root)], last_[static_cast<size_t>(output)]);
    // Whoever shares the input from now on would share it with this output.
    ++shared_;
    if (last_[static_cast<size_t>(root)] == position)
      last_[static_cast<size_t>(root)] = position + 1;
  }

  bool MustBeAlone(const PlanValue& value) const {
    return std::ranges::count(plan_.memory.skip, value.name) > 0;
  }

  int64_t LastReadOfStorage(int32_t root) const { return last_[static_cast<size_t>(root)]; }

  int64_t ReadsOfStorage(const Instruction& instruction, int32_t root) const {
    return std::ranges::count_if(instruction.inputs, [&](int32_t input) {
      return input >= 0 && plan_.StorageOf(input) == root;
    });
  }

  Plan& plan_;
  std::vector<int64_t> last_;  // of a storage's root: of all values that lie on it
  int64_t shared_ = 0;
};

}  // namespace

PassReport MemoryReusePass::Apply(const OpRegistry&, Plan* plan) const {
  plan->reuse = plan->memory.policy;
  if (plan->reuse == ReusePolicy::kNone)
    return {.pass = {}, .changes = 0, .summary = "policy none"};
  const int64_t shared = InPlaceAssignment(plan).Run();
  return {.pass = {},
          .changes = shared,
          .summary = StrCat("policy ", ReusePolicyName(plan->reuse), ", ", shared,
                            " values computed in place")};
}

}  // namespace skiff
