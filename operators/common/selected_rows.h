// Common code of kernels on selected rows. Kernels that must add up repeated rows use
// merged_rows.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/parallel.h"
#include "framework/op/registry.h"

namespace skiff {

// Copies the row numbers between selected rows with equally many rows; both may share storage.
void CopyRowNumbers(const Tensor& from, Tensor* to);

// Returns the number of elements of a row.
inline int64_t RowWidth(const Shape& shape) { return shape.element_count(1, shape.rank()); }

// Throws Error (kOutOfRange), naming the first offending position, unless all row numbers are -1 or
// in [0, height).
void CheckRowNumbers(std::span<const int64_t> rows, int64_t height);

// Adds the values of each row in use to dense[row, :], in order. Threaded by columns, so that the
// number of threads changes no bit. `dense` must have the shape that `rows` represents. T is float
// or double. Throws what CheckRowNumbers throws.
template <typename T>
void AddSelectedRows(const Tensor& rows, T* dense);
// The same with other values for `rows`.
template <typename T>
void AddSelectedRows(const Tensor& rows, const T* values, T* dense);

// Adds a kernel for selected rows X -> Out to an op that is linear in X: it runs the kernel of
// `prepare`, which takes fewer rows, on the values as if they were a dense tensor, and copies the
// row numbers.
template <typename T>
void AddValuesKernel(OpRegistry& registry, std::string_view type, KernelFactory prepare) {
  const auto prepare_both = [prepare = std::move(prepare)]<typename>(PrepareContext& context) {
    return MakeRowsKernel([values = prepare(context), x = In<>(context, "X"),
                           out = Out<>(context, "Out")](const KernelContext& run) {
      values->Run(run);
      CopyRowNumbers(x.tensor(run), &out.tensor(run));
    });
  };
  registry.AddSelectedRowsKernels<T>(type, prepare_both);
}

}  // namespace skiff
