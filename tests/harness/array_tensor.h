// Conversion, layouts and comparison for the float64 arrays of cases and for tensors. The code is
// as simple as possible, since it judges the real code.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/tensor/tensor.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// Tensors by variable name.
using NamedTensors = std::map<std::string, Tensor>;

// Returns the dtype of an array in a run of `run_dtype`.
DType DTypeIn(const Array& array, DType run_dtype);

// Returns a plain tensor with the array's values rounded to `dtype`. Throws Error for a dtype that
// cases don't use.
Tensor ToTensor(const Array& array, DType dtype);
// Returns an array with the tensor's values and dtype (fixed_dtype). Exact except for int64 beyond
// 2^53.
Array ToArray(const Tensor& tensor);
// Returns a plain tensor converted to another dtype.
Tensor Cast(const Tensor& tensor, DType dtype);
// Returns a tensor of zeros of the same shape and dtype; for selected rows, every row is row 0.
Tensor ZerosLike(const Tensor& tensor);

// Copies a plain tensor into `to`, which has the same shape and dtype and any layout, and zeros the
// padding.
void CopyIntoLayout(const Tensor& from, Tensor* to);
// Returns a plain copy of a tensor of any layout. Selected rows stay selected rows, with zeros in
// place of undefined values.
Tensor ToPlain(const Tensor& tensor);
// Returns whether all padding of a blocked tensor is zero; true for a plain one.
bool PaddingIsZero(const Tensor& tensor);

// Returns whether two plain tensors, or two selected rows, have equal shape, dtype and bytes.
bool SameBits(const Tensor& a, const Tensor& b);

// Returns an empty string if `found` agrees with `expected` within the tolerance (see tolerance.h),
// else where they first differ: "index [0, 3]: found 1.5, expected 1.25 (tolerance 1e-05)". NaN
// agrees with NaN.
std::string FirstDifference(const Array& found, const Array& expected, double tolerance);

// Returns the position of a flat index in `shape`: "[0, 3]".
std::string IndexName(const Shape& shape, int64_t flat);

}  // namespace skiff::harness
