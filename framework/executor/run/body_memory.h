// The memory of a loop's body, and the tensors in it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/executor/device/device_link.h"
#include "framework/executor/run/plan_kernels.h"
#include "framework/executor/storage/bound_values.h"
#include "framework/op/kernel.h"
#include "framework/plan/loop.h"
#include "framework/plan/plan.h"
#include "memory/byte_range_set.h"

namespace skiff {

// The memory of a body: on its place, and for a body on a device on the host, too.
struct BodyMemory {
  char* on_place = nullptr;
  char* on_host = nullptr;
};

// Where values that outlive an instruction lie, after the body's arenas.
struct BodyOffsets {
  // `kernels`: of the body, whose storage is planned.
  BodyOffsets(const Loop& loop, const std::vector<PreparedKernel>& kernels);

  std::vector<int64_t> carried;  // by feed, -1 for others
  // Stacked values whose kernels set the rows, until the rows are known.
  std::map<ValueId, int64_t> unsized;
  // The rows of batched instructions.
  std::map<size_t, int64_t> batches;
  std::vector<int64_t> forms;  // of the loop, by instruction
  int64_t end;
  int64_t host_end;  // of a device body's memory on the host
  bool is_guarded;
  std::vector<ByteRange> used = {};  // all of these, if there are guards

 private:
  int64_t Add(const Plan& body, ValueId value);
  int64_t Add(int64_t bytes, int64_t alignment);
};

// The tensors of the body. Their addresses are stable; an iteration only moves the data pointers of
// tensors in stacks.
class BodyTensors final : public ValueTensors {
 public:
  // The loop must outlive the tensors.
  explicit BodyTensors(const Loop& loop);

  // Takes the scope's values from the outer plan, and places the values of the arenas in `memory`.
  void Place(const KernelContext& outer, const BodyMemory& memory);
  // Releases the feeds of the loop, whose owner may want the memory back.
  void ReleaseInvariants() const;

  // Removes the elements of the arrays that each iteration begins empty.
  void ClearOwnArrays();
  // On a device, gives back memory that the cleared arrays have outgrown, after a wait.
  void ReleaseOutgrown(DeviceLink* link);

  void* InArena(skiff::Place place, int64_t offset) const override {
    const bool is_apart = place.is_cpu() && !body_.place.is_cpu();
    return (is_apart ? memory_.on_host : memory_.on_place) + offset;
  }
  // Throws an Error (kUnimplemented).
  void SetPending(ValueId value, PendingWrites*) override;

 private:
  const Loop& loop_;
  const Plan& body_;
  std::map<std::string, Tensor> own_arrays_;
  BodyMemory memory_;
};

// Copies a tensor to memory on its place, and fills the first bytes of a tensor with zeros: on the
// CPU at once, on a device in its stream.
void CopyOnPlace(const Tensor& from, void* to, DeviceLink* link);
void ZeroOnPlace(Tensor* tensor, int64_t bytes, DeviceLink* link);

}  // namespace skiff
