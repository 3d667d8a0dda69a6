// Between the float64 arrays of cases and tensors: conversion, layouts, comparison. Everything is
// as naive as possible, since it judges the real thing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/tensor/tensor.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// Tensors by variable name.
using NamedTensors = std::map<std::string, Tensor>;

// The dtype that an array has in a run of `run_dtype`.
DType DTypeIn(const Array& array, DType run_dtype);

// A plain tensor of the array, values rounded to `dtype`. Error for a dtype that cases don't use.
Tensor ToTensor(const Array& array, DType dtype);
// The inverse, exact but for int64 beyond 2^53. The array has the tensor's dtype, fixed.
Array ToArray(const Tensor& tensor);
// `tensor`, which is plain, converted to another dtype.
Tensor Cast(const Tensor& tensor, DType dtype);
// A tensor of zeros of the same shape and dtype; selected rows with each slot for row 0.
Tensor ZerosLike(const Tensor& tensor);

// Copies a plain tensor into `to`, which has the same shape and dtype and any layout; padding
// becomes zero.
void CopyIntoLayout(const Tensor& from, Tensor* to);
// A plain copy of a tensor of any layout. Selected rows stay what they are, with zeros where
// nothing is defined.
Tensor ToPlain(const Tensor& tensor);
// Whether the padding of a blocked tensor is zero throughout (true for a plain one).
bool PaddingIsZero(const Tensor& tensor);

// Whether shape, dtype and bytes of two plain tensors, or selected rows, agree.
bool SameBits(const Tensor& a, const Tensor& b);

// Empty if `found` agrees with `expected` within the tolerance (see tolerance.h), else where they
// first differ, in words: "index [0, 3]: found 1.5, expected 1.25 (tolerance 1e-05)". Not-a-number
// agrees with not-a-number.
std::string FirstDifference(const Array& found, const Array& expected, double tolerance);

// "[0, 3]" for a flat index into `shape`.
std::string IndexName(const Shape& shape, int64_t flat);

}  // namespace skiff::harness
