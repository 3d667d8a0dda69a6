// Making, reshaping, joining and cutting tensors.
#pragma once

#include <cstdint>
#include <source_location>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/initializer.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

// A tensor of one value.
Variable FillConstant(const std::vector<int64_t>& dims, DType dtype, double value,
                      Site site = Site::current());
// A tensor of these values, row by row, and of their dtype. Error unless there are as many as
// elements.
Variable AssignValue(const std::vector<int64_t>& dims, const std::vector<float>& values,
                     Site site = Site::current());
Variable AssignValue(const std::vector<int64_t>& dims, const std::vector<double>& values,
                     Site site = Site::current());
Variable AssignValue(const std::vector<int64_t>& dims, const std::vector<int32_t>& values,
                     Site site = Site::current());
Variable AssignValue(const std::vector<int64_t>& dims, const std::vector<int64_t>& values,
                     Site site = Site::current());
// Random numbers of float32 or float64, others in each step of a training: see docs/determinism.md,
// and the initializers of these options.
Variable UniformRandom(const std::vector<int64_t>& dims,
                       const initializer::UniformOptions& options = {},
                       DType dtype = DType::kFloat32, Site site = Site::current());
Variable GaussianRandom(const std::vector<int64_t>& dims,
                        const initializer::NormalOptions& options = {},
                        DType dtype = DType::kFloat32, Site site = Site::current());
Variable TruncatedGaussianRandom(const std::vector<int64_t>& dims,
                                 const initializer::NormalOptions& options = {},
                                 DType dtype = DType::kFloat32, Site site = Site::current());
Variable ZerosLike(const Variable& x, Site site = Site::current());
Variable Assign(const Variable& x, Site site = Site::current());
Variable Cast(const Variable& x, DType dtype, Site site = Site::current());

// At most one dim of -1, which takes what is left; 0 copies the extent of x.
Variable Reshape(const Variable& x, const std::vector<int32_t>& dims, Site site = Site::current());
// Dim i of the result is dim permutation[i] of x.
Variable Transpose(const Variable& x, const std::vector<int32_t>& permutation,
                   Site site = Site::current());
// A matrix whose rows are the dims before `axis` (negative from the back).
Variable Flatten(const Variable& x, int32_t axis = 1, Site site = Site::current());
// Removes dims of extent 1; no axes: all of them.
Variable Squeeze(const Variable& x, const std::vector<int32_t>& axes, Site site = Site::current());
// Inserts dims of extent 1 at these positions of the result.
Variable Unsqueeze(const Variable& x, const std::vector<int32_t>& axes,
                   Site site = Site::current());

Variable Concat(const std::vector<Variable>& xs, int32_t axis = 0, Site site = Site::current());
// `count` equal parts. Error unless count > 0.
std::vector<Variable> Split(const Variable& x, int32_t count, int32_t axis = -1,
                            Site site = Site::current());
// Parts of these extents, of which one may be -1: what is left. Error if there is none.
std::vector<Variable> SplitSections(const Variable& x, const std::vector<int32_t>& sections,
                                    int32_t axis = -1, Site site = Site::current());

struct SliceOptions {
  std::vector<int32_t> axes;
  std::vector<int32_t> starts;              // negative from the end
  std::vector<int32_t> ends;                // exclusive; beyond the extent means the end
  std::vector<int32_t> decrease_axis = {};  // axes of extent 1 to drop
};
Variable Slice(const Variable& x, const SliceOptions& options, Site site = Site::current());

struct TopKResult {
  Variable values;
  Variable indices;  // int64
};
// The k largest along the last dim, in descending order.
TopKResult TopK(const Variable& x, int32_t k, Site site = Site::current());

}  // namespace skiff::layers
