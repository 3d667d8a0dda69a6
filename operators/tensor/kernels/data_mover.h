// Moving elements where the tensors of a run are: in host memory, or in that of a device. So ops
// that only move elements have one kernel for both (data_movement.cu registers it for the device).
#pragma once

#include <cstdint>
#include <span>

#include "framework/op/kernel.h"
#include "operators/tensor/kernels/strided_copy.h"

namespace skiff {

// A part of a tensor: indices [offset, offset + extent) of an axis. `data` is an array of its own.
struct AxisPart {
  void* data = nullptr;
  int64_t offset = 0;
  int64_t extent = 0;
};

struct AxisParts {
  const Shape& whole;  // the shape of the tensor
  int axis = 0;
  DType dtype = DType::kFloat32;
  std::span<const AxisPart> parts;
};

// Moves boxes and parts; memory_mover.h moves bytes. No function allocates host memory. On a device
// they only issue the work.
class DataMover {
 public:
  virtual ~DataMover() = default;

  // StridedCopy::Run.
  virtual void Copy(const KernelContext& run, const StridedCopy& box, const void* source,
                    void* target) const = 0;
  // Copy all parts into the tensor (out of it).
  virtual void Join(const KernelContext& run, const AxisParts& parts, void* whole) const = 0;
  virtual void Split(const KernelContext& run, const AxisParts& parts, const void* whole) const = 0;
};

// Returns the mover for the place of the run.
const DataMover& MoverOf(const KernelContext& run);

// Sets the mover for devices, which must last as long as the program.
void SetDeviceMover(const DataMover* mover);

}  // namespace skiff
