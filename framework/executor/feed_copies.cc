#include "framework/executor/feed_copies.h"

#include <algorithm>
#include <cstring>

#include "framework/base/str_cat.h"
#include "framework/plan/loop.h"
#include "framework/tensor/bools.h"

namespace skiff {
namespace {

// Returns whether what the op does with its memory depends on the data of this input.
bool DependsOnData(const Instruction& instruction, ValueId value) {
  const OpDef& def = *instruction.def;
  if (def.data_dependent_shape) return true;
  return std::ranges::any_of(def.inputs, [&](const SlotDef& slot) {
    if (!slot.checks_data) return false;
    for (size_t i = 0; const ValueId input = instruction.InputIn(slot.name, i); ++i) {
      if (input == value) return true;
    }
    return false;
  });
}

bool AreReadByData(const Plan& plan, const std::vector<Instruction>& instructions, ValueId value);

bool IsReadByData(const Plan& plan, const Instruction& instruction, ValueId value) {
  if (instruction.kind == InstructionKind::kFused) {
    return AreReadByData(plan, instruction.members, value);
  }
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    const ValueId input = instruction.inputs[i];
    if (!input || plan.StorageOf(input) != value || !instruction.reads_data[i]) continue;
    if (instruction.kind == InstructionKind::kOp && DependsOnData(instruction, input)) return true;
    if (instruction.kind != InstructionKind::kLoop) continue;
    const Loop& loop = *instruction.loop;
    const bool is_in_body = std::ranges::any_of(loop.feeds, [&](const LoopFeed& feed) {
      return feed.input == static_cast<int>(i) &&
             AreReadByData(loop.body, loop.body.instructions, feed.value);
    });
    if (is_in_body) return true;
  }
  return false;
}

bool AreReadByData(const Plan& plan, const std::vector<Instruction>& instructions, ValueId value) {
  return std::ranges::any_of(instructions, [&](const Instruction& instruction) {
    return IsReadByData(plan, instruction, value);
  });
}

bool IsCopied(const Plan& plan, ValueId feed) {
  return !IsFloat(plan[feed].meta.dtype) || AreReadByData(plan, plan.instructions, feed);
}

}  // namespace

FeedCopies::FeedCopies(const Plan& plan, const BoundValues& values, SharedArena* arena)
    : arena_(*arena) {
  for (size_t i = 0; i < plan.feeds.size(); ++i) {
    const ValueId feed = plan.feeds[i];
    if (!IsCopied(plan, feed)) continue;
    const std::string& name = plan[feed].name;
    const int64_t bytes = StorageBytes(plan[feed]);
    arena_.FeedCopy(name, bytes);
    copies_.push_back({.feed = i,
                       .name = name,
                       .what = StrCat("feed \"", name, "\""),
                       .value = values.Of(feed),
                       .bytes = bytes,
                       .from = {}});
  }
}

void FeedCopies::Bind(const FeedList& feeds) {
  for (Copy& copy : copies_) {
    copy.from = feeds[copy.feed].second;
    *copy.value =
        Tensor(copy.from.shape(), copy.from.dtype(), arena_.FeedCopy(copy.name, copy.bytes));
    copy.value->ShareLoD(copy.from.shared_lod());
  }
}

void FeedCopies::Read() {
  for (const Copy& copy : copies_) {
    const auto bytes = static_cast<size_t>(copy.from.byte_count());
    if (bytes > 0) std::memcpy(copy.value->raw_data(), copy.from.raw_data(), bytes);
    CheckBools(*copy.value, copy.what);
  }
}

void FeedCopies::Release() {
  for (Copy& copy : copies_) copy.from = Tensor();
}

}  // namespace skiff
