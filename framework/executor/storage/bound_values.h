// The memory of a plan's values: its arena, and the tensors in the arena, in the scope and in the
// feeds.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/executor/storage/shared_arena.h"
#include "framework/plan/plan.h"
#include "framework/tensor/pending_writes.h"
#include "framework/tensor/scope.h"
#include "framework/tensor/tensor.h"

namespace skiff {

class DeviceLink;

// The tensors of a plan's values, as kernels see them.
class ValueTensors {
 public:
  explicit ValueTensors(size_t values) : tensors_(values), tensor_of_(values, nullptr) {}
  virtual ~ValueTensors() = default;
  ValueTensors(const ValueTensors&) = delete;
  ValueTensors& operator=(const ValueTensors&) = delete;

  // Returns the value's tensor, or nullptr if there is no value. The address is stable; the tensor
  // of a feed has no data until it is fed.
  Tensor* Of(ValueId value) const { return value ? tensor_of_[value] : nullptr; }
  // Returns the address of an offset in the arena of a place.
  virtual void* InArena(Place place, int64_t offset) const = 0;
  // Notes that a kernel writes the tensor of a scope value in the background.
  virtual void SetPending(ValueId value, PendingWrites* pending) = 0;

 protected:
  ValueTable<Tensor> tensors_;     // of values that aren't in the scope
  ValueTable<Tensor*> tensor_of_;  // in tensors_ or in the scope
};

class BoundValues final : public ValueTensors {
 public:
  // Reserves room in the arena, and in the scope a tensor for each persistable that the plan writes
  // and the scope lacks; the scope hides these persistables until Reveal. Throws an Error:
  // kResourceExhausted if there is no memory, kFailedPrecondition if two variables share memory in
  // the scope and the plan writes either. Plan and scope must outlive the object.
  BoundValues(const Plan& plan, Scope* scope, std::shared_ptr<SharedArena> arena);
  // Erases hidden persistables.
  ~BoundValues() override;

  void* InArena(Place place, int64_t offset) const override {
    return static_cast<char*>(MemoryOf(place)->data()) + offset;
  }
  // Follows the arenas to where another plan's needs have moved them. Returns whether an arena has
  // moved: all addresses in that arena have changed then. Tensors keep their rows.
  bool FollowArena();

  // The variables of the scope that the plan writes, by name.
  const std::map<std::string, const Tensor*>& written() const { return written_; }
  // Removes the elements of all arrays of the program, which keep their memory. Gives back memory
  // that arrays on the device have outgrown, after a wait.
  void ClearArrays(DeviceLink* link) const;
  // Makes the hidden persistables visible, since a run has filled them.
  void Reveal();
  // Erases the hidden persistables from the scope. Returns whether there were any: if so, the
  // tensors of their values are gone.
  bool EraseHidden();
  // Hides the persistables that the last Reveal has shown, since a later segment of the run has
  // failed.
  void UndoReveal();

  void SetPending(ValueId value, PendingWrites* pending) override;
  // Waits for a kernel that may still be writing the tensor.
  void Await(const Tensor& tensor) const;

 private:
  // A persistable that no run has filled yet, and the storage that was reserved for it.
  struct Hidden {
    std::string name;
    std::shared_ptr<Buffer> buffer;
  };

  const std::shared_ptr<Buffer>& MemoryOf(Place place) const {
    return place.is_cpu() ? host_memory_ : memory_;
  }
  // Makes the arenas large enough. Returns whether one has moved.
  bool ReserveArenas();
  void ReservePersistables();
  Tensor NewVariable(const PlanValue& value) const;
  // Lets loops stack to arrays that all plans share.
  void BindStacks();

  const Plan& plan_;
  Scope& scope_;
  ArenaUse arena_;
  // The arenas', as the tensors know them. On the CPU there is only one.
  std::shared_ptr<Buffer> memory_;
  std::shared_ptr<Buffer> host_memory_;
  std::vector<Hidden> hidden_;
  std::vector<Hidden> revealed_;  // by the last Reveal
  std::map<std::string, const Tensor*> written_;
  std::map<const Tensor*, PendingWrites*> pending_;
};

}  // namespace skiff
