// unfold and fold: images as the columns that a sliding window sees (im2col), and the sum of such
// columns as images (col2im). Each is the gradient of the other.
#pragma once

#include <string_view>
#include <vector>

#include "framework/op/registry.h"
#include "operators/nn/convolution/volume_convolution.h"

namespace skiff {

// Attributes that both ops have.
std::vector<AttrDef> UnfoldingAttrs();

// Return the convolution, with one output channel, whose columns are the columns of unfold (fold)
// or its gradient op, by the attributes and the shape in slot X. Dims of -1 stay unknown. Throw
// Error for shapes and attributes that don't fit.
VolumeConvolution ParseUnfold(const OpContext& context);
VolumeConvolution ParseFold(const OpContext& context);

// [N, C · taps, points]
Shape ColumnsShape(const VolumeConvolution& conv);

// Which of the two a kernel makes of the other.
enum class UnfoldingResult { kColumns, kImages };

struct UnfoldingKernel {
  std::string_view type;
  VolumeConvolution (*parse)(const OpContext&) = nullptr;
  UnfoldingResult result = UnfoldingResult::kColumns;
  std::string_view from;  // slots
  std::string_view to;
};
// The kernels of unfold, fold and their gradient ops.
inline constexpr UnfoldingKernel kUnfoldingKernels[] = {
    {"unfold", ParseUnfold, UnfoldingResult::kColumns, "X", "Y"},
    {"unfold_grad", ParseUnfold, UnfoldingResult::kImages, "Y@GRAD", "X@GRAD"},
    {"fold", ParseFold, UnfoldingResult::kImages, "X", "Y"},
    {"fold_grad", ParseFold, UnfoldingResult::kColumns, "Y@GRAD", "X@GRAD"}};

// Adds the CPU's to `type` and its gradient op.
void AddUnfoldingKernels(OpRegistry& registry, std::string_view type);

}  // namespace skiff
