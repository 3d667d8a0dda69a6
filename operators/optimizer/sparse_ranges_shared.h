// Updates by sparse gradients: the ranges of a parameter that selected rows make.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/tensor/tensor.h"
#include "operators/optimizer/update_range_shared.h"

namespace skiff {

// Which rows of a parameter a sparse gradient updates.
enum class SparseRows {
  kTouched,  // those that it has
  kAll,      // all: those that it lacks by a gradient of 0
};

// Cuts the parameter of `whole`, a range without a gradient, into one for each row of the selected
// rows `grad`, whose values are `values`, slots of one row added in order of occurrence, and, with
// kAll, one for the rows between two such rows, without a gradient: that means 0. In the order of
// rows. `sums` takes the values of rows with several slots: as many elements as `grad` has. Appends
// to `ranges`, at most 2n + 1 for n slots.
template <typename T>
void AppendRowRanges(const UpdateRange<T>& whole, const Tensor& grad, const T* values,
                     SparseRows rows, void* merge_workspace, T* sums,
                     std::vector<UpdateRange<T>>* ranges);

}  // namespace skiff
