// A tensor and its parts along one axis: what concat, split, stack and unstack share, forward and
// backward.
#pragma once

#include <vector>

#include "framework/op/registry.h"
#include "operators/tensor/strided_copy_shared.h"

namespace skiff {

// The copy between a part of extent `extent` and the slice of a tensor of shape `whole` that
// starts at `offset` along `axis`. `from_part`: from the part into the tensor, else back.
class PartCopy {
 public:
  PartCopy(const Shape& whole, int axis, int64_t offset, int64_t extent, DType dtype,
           bool from_part);
  // The tensor is given by its first element, whatever the offset.
  void Run(const void* part, void* whole) const;      // from the part
  void Extract(const void* whole, void* part) const;  // to the part

 private:
  StridedCopy copy_;
  int64_t offset_bytes_ = 0;
};

// `part` with an axis of `extent` put in before dim `axis`.
Shape WithAxis(const Shape& part, int axis, int64_t extent);

// The kernel that takes `outputs` (or fewer: absent ones are skipped) out of `whole` along `axis`;
// `extents` are those of all parts.
std::unique_ptr<Kernel> MakeSplitKernel(const PrepareContext& context, const std::string& whole,
                                        const std::string& parts, int axis,
                                        const std::vector<int64_t>& extents);

// The reverse: the kernel that puts the inputs `parts` one behind the other along `axis` of the
// output `whole`.
std::unique_ptr<Kernel> MakeJoinKernel(const PrepareContext& context, const std::string& parts,
                                       const std::string& whole, int axis,
                                       const std::vector<int64_t>& extents);

// The same for parts that lack the axis, as stack and unstack have them: each takes one place.
std::unique_ptr<Kernel> MakeUnstackKernel(const PrepareContext& context, const std::string& whole,
                                          const std::string& parts, int axis);
std::unique_ptr<Kernel> MakeStackKernel(const PrepareContext& context, const std::string& parts,
                                        const std::string& whole, int axis);

// The shape that all arguments of the slot have, as far as one of them knows it. Error for one of
// another shape or dtype.
Shape CommonShape(const OpContext& context, const std::string& slot);

}  // namespace skiff
