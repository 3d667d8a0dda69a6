// A tensor and its parts along an axis, for concat, split, stack, unstack and the gradients.
#pragma once

#include <vector>

#include "framework/op/registry.h"

namespace skiff {

// Returns `part` with an axis of `extent` inserted before dim `axis`.
Shape WithAxis(const Shape& part, int axis, int64_t extent);

// Returns the kernel that splits `whole` along `axis` into `outputs`, of which some may be absent.
// `extents` has the extent of every part.
std::unique_ptr<Kernel> MakeSplitKernel(const PrepareContext& context, const std::string& whole,
                                        const std::string& parts, int axis,
                                        const std::vector<int64_t>& extents);

// Returns the reverse: the kernel that joins the inputs `parts` along `axis` to the output `whole`.
std::unique_ptr<Kernel> MakeJoinKernel(const PrepareContext& context, const std::string& parts,
                                       const std::string& whole, int axis,
                                       const std::vector<int64_t>& extents);

// Return the same for parts that lack the axis, as in stack and unstack: each takes one index.
std::unique_ptr<Kernel> MakeUnstackKernel(const PrepareContext& context, const std::string& whole,
                                          const std::string& parts, int axis);
std::unique_ptr<Kernel> MakeStackKernel(const PrepareContext& context, const std::string& parts,
                                        const std::string& whole, int axis);

// Returns the common shape of all arguments of the slot. A dim is known if any argument knows it.
// Throws Error for an argument of another shape or dtype.
Shape CommonShape(const OpContext& context, const std::string& slot);

}  // namespace skiff
