// One pass over the instructions in their present order. For each storage it keeps the last writer
// and the readers since then, which gives the usual three hazards: a reader depends on the writer,
// a writer on the writer before it and on all readers since. Barriers and data checks add edges of
// their own. Edges that follow from others are left out where that is easy, so that the graph stays
// about linear in the plan.
#include "framework/analysis/dependencies.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "framework/ir/op_role.h"
#include "framework/op/host_slots.h"
#include "framework/plan/loop.h"

namespace skiff {
namespace {

constexpr size_t kNobody = static_cast<size_t>(-1);

class DependencyFinder {
 public:
  explicit DependencyFinder(const Plan& plan)
      : plan_(plan), before_(plan.instructions.size()), uses_(plan.values.size()) {}

  std::vector<std::vector<size_t>> Find() {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      AddBarrier(i);
      AddCollective(i);
      AddStorageUses(i);
      AddChecks(i);
    }
    return Sorted();
  }

  std::vector<std::vector<size_t>> FindOfData() {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) AddStorageUses(i);
    return Sorted();
  }

 private:
  // The last write of a storage, and the reads since then.
  struct Use {
    size_t writer = kNobody;
    std::vector<size_t> readers;
  };

  std::vector<std::vector<size_t>> Sorted() {
    for (std::vector<size_t>& before : before_) {
      std::ranges::sort(before);
      before.erase(std::ranges::unique(before).begin(), before.end());
    }
    return std::move(before_);
  }

  void Add(size_t i, size_t earlier) {
    if (earlier != kNobody && earlier != i) before_[i].push_back(earlier);
  }

  void AddBarrier(size_t i) {
    Add(i, barrier_);
    if (!MustStay(plan_.instructions[i])) return;
    // What came before the last barrier precedes this one through it.
    for (size_t earlier = barrier_ == kNobody ? 0 : barrier_ + 1; earlier < i; ++earlier) {
      Add(i, earlier);
    }
    barrier_ = i;
  }

  void AddCollective(size_t i) {
    if (!IsCollective(plan_.instructions[i])) return;
    Add(i, collective_);
    collective_ = i;
  }

  void AddStorageUses(size_t i) {
    const Instruction& instruction = plan_.instructions[i];
    for (size_t j = 0; j < instruction.inputs.size(); ++j) {
      if (!instruction.inputs[j] || !instruction.reads_data[j]) continue;
      Use& use = UseOf(instruction.inputs[j]);
      Add(i, use.writer);
      use.readers.push_back(i);
    }
    for (const ValueId output : instruction.outputs) {
      if (!output) continue;
      // After the inputs, so that an instruction that reads and writes a storage doesn't depend on
      // itself.
      Use& use = UseOf(output);
      Add(i, use.writer);
      for (const size_t reader : use.readers) Add(i, reader);
      use = {.writer = i, .readers = {}};
    }
  }

  void AddChecks(size_t i) {
    const Instruction& instruction = plan_.instructions[i];
    if (ChecksData(instruction)) {
      Add(i, check_);
      for (const size_t writer : scope_writers_) Add(i, writer);
      // Later checks follow these writers through this check.
      scope_writers_.clear();
      check_ = i;
    }
    // A failing check must find the scope as in the given order: nothing that writes it moves
    // across.
    const bool writes_scope = std::ranges::any_of(instruction.outputs, [&](ValueId output) {
      return output && StorageOf(output).storage == Storage::kScope;
    });
    if (!writes_scope) return;
    Add(i, check_);
    scope_writers_.push_back(i);
  }

  const PlanValue& StorageOf(ValueId value) const { return plan_[plan_.StorageOf(value)]; }

  Use& UseOf(ValueId value) {
    const PlanValue& storage = StorageOf(value);
    // All values of a scope variable are in its one tensor.
    if (storage.storage == Storage::kScope) return scope_uses_[storage.name];
    return uses_[plan_.StorageOf(value)];
  }

  const Plan& plan_;
  std::vector<std::vector<size_t>> before_;
  ValueTable<Use> uses_;
  std::unordered_map<std::string_view, Use> scope_uses_;
  size_t barrier_ = kNobody;
  size_t collective_ = kNobody;
  size_t check_ = kNobody;
  std::vector<size_t> scope_writers_;  // since the last check
};

}  // namespace

bool ChecksData(const Instruction& instruction) {
  if (instruction.kind == InstructionKind::kLoop) {
    return instruction.loop->condition_feed >= 0 ||
           std::ranges::any_of(instruction.loop->body.instructions, ChecksData);
  }
  if (instruction.kind != InstructionKind::kOp) return false;
  // What it makes may not fit where it belongs.
  if (instruction.def->data_dependent_shape) return true;
  return std::ranges::any_of(instruction.def->inputs, [&](const SlotDef& slot) {
    return slot.checks_data && instruction.InputIn(slot.name);
  });
}

bool MayNoteFault(const Instruction& instruction) {
  return instruction.kind == InstructionKind::kOp &&
         std::ranges::any_of(instruction.def->inputs, [&](const SlotDef& slot) {
           return MayNoteFault(slot) && instruction.InputIn(slot.name);
         });
}

// An array of gradients isn't as before when the gradient of a write has read it:
// read_from_array.cc.
bool TakesElements(const Instruction& instruction) {
  const auto is_array = [](const SlotDef& slot) { return slot.array; };
  return (instruction.op->role() & kRoleBackward) != 0 &&
         std::ranges::any_of(instruction.def->inputs, is_array);
}

bool MustStay(const Instruction& instruction) {
  if (instruction.kind == InstructionKind::kLoop) {
    return std::ranges::any_of(instruction.loop->body.instructions, MustStay);
  }
  return instruction.kind == InstructionKind::kOp &&
         (instruction.def->has_side_effect || !instruction.op->SubBlocks().empty() ||
          TakesElements(instruction));
}

bool IsCollective(const Instruction& instruction) {
  return instruction.kind == InstructionKind::kOp && instruction.def->collective;
}

bool MustRunOnce(const Instruction& instruction) {
  return MustStay(instruction) || IsCollective(instruction);
}

std::vector<std::vector<size_t>> Dependencies(const Plan& plan) {
  return DependencyFinder(plan).Find();
}

std::vector<std::vector<size_t>> DataDependencies(const Plan& plan) {
  return DependencyFinder(plan).FindOfData();
}

}  // namespace skiff
