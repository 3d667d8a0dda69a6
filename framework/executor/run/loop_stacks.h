// The stacks of a loop (framework/plan/loop.h): where the values of an iteration lie in them.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/executor/device/device_link.h"
#include "framework/executor/rows/loop_rows.h"
#include "framework/executor/run/body_memory.h"
#include "framework/op/kernel.h"
#include "framework/plan/loop.h"
#include "framework/plan/plan.h"

namespace skiff {

// Returns whether the number of slots of the loop's stacks is known before the loop runs. Otherwise
// the stacks are arrays.
bool CountsBefore(const Loop& loop);

class LoopStacks {
 public:
  // `rows`: nullptr if no rows vary. `link` is to the body's place. All must outlive the stacks.
  LoopStacks(const Loop& loop, const BodyOffsets& offsets, const LoopRows* rows,
             BodyTensors* tensors, DeviceLink* link);

  // Returns whether the value is elsewhere in each iteration.
  bool Moves(ValueId value) const;
  // Returns the address of part t of the stack that a feed (kPart) hands out.
  char* PartOf(const KernelContext& context, const LoopFeed& feed, int64_t t) const;
  // Points such feeds at part t.
  void MoveParts(const KernelContext& context, int64_t t) const;
  // Returns the address of a slot of the stack that holds a carried value, an output of the loop.
  // Makes room for the slot if the number of iterations isn't known.
  char* CarriedSlot(const KernelContext& context, const LoopFeed& feed, int64_t slot) const;

  // Forgets where the values of the iteration before lay.
  void StartIteration();
  // Gives the stacked values slots whose sizes are known by now.
  void Place(const KernelContext& context, int64_t slot);
  // Moves outputs of an instruction that sets rows to their slot, now that the rows are known.
  void KeepUnsized(const KernelContext& context, int64_t slot, const Instruction& instruction);

 private:
  // A storage that lies in a stack, and a value in it.
  struct Stashed {
    ValueId value;
    LoopStash stash;
    bool varies = false;
    bool is_placed = false;  // in this iteration
  };

  bool IsStash(ValueId value) const;
  char* OutputSlot(const KernelContext& context, int output, int64_t slot,
                   int64_t slot_bytes) const;
  void PlaceRoot(const KernelContext& context, int64_t slot, const Stashed& stashed);
  // Points all values of a stacked storage at an address.
  void Point(ValueId root, void* data) const;
  // The same for its slot.
  void MoveToSlot(ValueId root, void* data);

  const Loop& loop_;
  const Plan& body_;
  const BodyOffsets& offsets_;
  const LoopRows* const rows_;
  BodyTensors& tensors_;
  DeviceLink& link_;
  std::vector<Stashed> stashed_;  // all values of each storage
};

}  // namespace skiff
