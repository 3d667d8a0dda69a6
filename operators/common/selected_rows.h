// What kernels on selected rows share. Those that must add up repeated rows: merged_rows.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/parallel.h"
#include "framework/op/registry.h"

namespace skiff {

// Copies the row numbers of selected rows of as many slots; they may be one storage.
void CopyRowNumbers(const Tensor& from, Tensor* to);

// Elements of a row.
inline int64_t RowWidth(const Shape& shape) { return shape.element_count(1, shape.rank()); }

// Error (kOutOfRange) that names the first slot whose row number is neither one of `height` rows
// nor -1.
void CheckRowNumbers(std::span<const int64_t> rows, int64_t height);

// dense[row, :] += the values of each slot in use, in the order of the slots. Threaded by columns,
// so that their number changes no bit. `dense` has the shape that `rows` stands for. T is float or
// double. Error as of CheckRowNumbers.
template <typename T>
void AddSelectedRows(const Tensor& rows, T* dense);
// The same of other values, one for each of `rows`.
template <typename T>
void AddSelectedRows(const Tensor& rows, const T* values, T* dense);

// Adds a kernel for selected rows X -> Out to an op that is linear in X: what `prepare` makes runs
// on the values as if they were all, and the row numbers stay.
template <typename T>
void AddValuesKernel(OpRegistry& registry, const std::string& type, KernelFactory prepare) {
  const auto prepare_both = [prepare = std::move(prepare)]<typename>(PrepareContext& context) {
    return MakeKernel([values = prepare(context), x = context.InputIndex("X"),
                       out = context.OutputIndex("Out")](const KernelContext& run) {
      values->Run(run);
      CopyRowNumbers(run.input(x), &run.output(out));
    });
  };
  registry.AddSelectedRowsKernels<T>(type, prepare_both);
}

}  // namespace skiff
