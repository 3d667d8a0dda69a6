// Registration and shape pieces that the ops of this family share.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/op/grad.h"
#include "framework/op/registry.h"

namespace skiff {

// Registers `prepare` as the plain CPU kernel for every dtype: the kernel looks at no element.
// `accepts` as in KernelDef.
void AddKernelsForAllDTypes(OpRegistry& registry, std::string_view type,
                            const KernelFactory& prepare,
                            const std::function<bool(const OpContext&)>& accepts = {});

// Error (kUnimplemented) if one of these slots, which give at run time what an attribute gives, is
// connected: shapes are known before a kernel runs.
void RejectRuntimeArguments(const OpContext& context, const std::vector<std::string>& slots);

// A slot of those, for definitions.
SlotDef RuntimeArgumentSlot(std::string name, bool duplicable = false);

// The product of dims [begin, end), -1 if one is unknown and none is 0.
int64_t ProductOrUnknown(const Shape& shape, int begin, int end);

// Sets the LoD level of output i of `slot`: that of X, or of the input given, if its rows are the
// input's, else 0.
void SetLodLevel(OpContext& context, bool same_rows, std::string_view input = "X",
                 std::string_view slot = "Out", size_t i = 0);

// `extent` without the dims that the attribute decrease_axis names. Error for one that isn't 1.
Shape WithoutDecreasedAxes(const OpContext& context, const Shape& extent);

// Sets Out to `shape` with X's dtype (and LoD level where the rows stay), and XShape to [0] + X's
// dims, the form in which Fluid hands the shape of X to the gradient.
void SetReshapedOutput(OpContext& context, const Shape& shape);

// The dims of X that input XShape of a gradient op carries. Error unless it is [0] + dims and of
// the dtype of Out@GRAD.
Shape DimsInXShape(const OpContext& context);

// The XShape output and the definition of a gradient op `type` that gives the elements of Out@GRAD
// the shape of X. Registers its kernels too.
SlotDef XShapeOutput();
void AddReshapeGrad(OpRegistry& registry, const std::string& type, const std::string& forward);
// The gradient rule that makes such an op.
GradRule ReshapeGradRule(const std::string& grad_type);

// The factory of a kernel that copies the elements of one slot to another, in order.
KernelFactory CopyFactory(const std::string& input, const std::string& output);

}  // namespace skiff
