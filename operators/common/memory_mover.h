// Moving bytes where the tensors of a run are: in host memory, or in that of a device. So ops that
// only move rows have one kernel for both (cuda_memory_mover.h registers it for the device).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/op/kernel.h"

namespace skiff {

// Copies bytes in host memory. Does nothing if source == target. Threaded.
void CopyBytes(const void* source, void* target, int64_t bytes);
// Sets bytes in host memory to zero. Threaded.
void ZeroBytes(void* target, int64_t bytes);

// Bytes that lie together, and where they go.
struct MemoryRun {
  const void* from = nullptr;  // nullptr: zeros
  void* to = nullptr;
  int64_t bytes = 0;
};

// Returns an empty list with room for `count` runs.
inline std::vector<MemoryRun> RoomForRuns(int64_t count) {
  std::vector<MemoryRun> runs;
  if (count > 0) runs.reserve(static_cast<size_t>(count));
  return runs;
}

// No function allocates host memory. On a device they only issue the work, and read the list of
// runs at once.
class MemoryMover {
 public:
  virtual ~MemoryMover() = default;

  // Does nothing if source == target.
  virtual void CopyBytes(const KernelContext& run, const void* source, void* target,
                         int64_t bytes) const = 0;
  virtual void ZeroBytes(const KernelContext& run, void* target, int64_t bytes) const = 0;
  // Copies many runs. No target may overlap another, or a source.
  virtual void CopyRuns(const KernelContext& run, std::span<const MemoryRun> runs) const = 0;
  // Adds the elements of each source to the source's target. No target may overlap another, or a
  // source. Takes the dtypes of CheckCanBeAdded.
  virtual void AddRuns(const KernelContext& run, DType dtype,
                       std::span<const MemoryRun> runs) const = 0;
};

// Returns the mover for the place of the run. Throws Error (kFailedPrecondition) if it has none.
const MemoryMover& MemoryMoverOf(const KernelContext& run);

// Set the memory mover for all devices, or another for one device. The mover must last as long as
// the program.
void SetMemoryMover(const MemoryMover* mover);
void SetMemoryMover(Place device, const MemoryMover* mover);

// Throws Error (kUnimplemented), which starts with the op's type, unless AddRuns takes the dtype: a
// float. Sums of half are those of float32, rounded.
void CheckCanBeAdded(const char* type, DType dtype);

}  // namespace skiff
