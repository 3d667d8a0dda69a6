// Comparisons, logic and counters, for conditions. Errors of all layers: layers.h.
#pragma once

#include <source_location>

#include "framework/builder/layers.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

// Compare element by element, with broadcasting, and return a bool variable.
Variable Equal(const Variable& x, const Variable& y, Site site = Site::current());
Variable NotEqual(const Variable& x, const Variable& y, Site site = Site::current());
Variable LessThan(const Variable& x, const Variable& y, Site site = Site::current());
Variable LessEqual(const Variable& x, const Variable& y, Site site = Site::current());
Variable GreaterThan(const Variable& x, const Variable& y, Site site = Site::current());
Variable GreaterEqual(const Variable& x, const Variable& y, Site site = Site::current());
// The same with a number, which is taken in the dtype of x. All throw an Error (kInvalidArgument)
// if the variable has whole numbers and the number isn't whole.
Variable Equal(const Variable& x, double y, Site site = Site::current());
Variable NotEqual(const Variable& x, double y, Site site = Site::current());
Variable LessThan(const Variable& x, double y, Site site = Site::current());
Variable LessEqual(const Variable& x, double y, Site site = Site::current());
Variable GreaterThan(const Variable& x, double y, Site site = Site::current());
Variable GreaterEqual(const Variable& x, double y, Site site = Site::current());
// Whether each element is NaN, is infinite, is neither. (IsFinite in math.h asks of all elements.)
Variable IsNan(const Variable& x, Site site = Site::current());
Variable IsInf(const Variable& x, Site site = Site::current());
Variable ElementwiseIsFinite(const Variable& x, Site site = Site::current());

// Combine bools element by element, with broadcasting.
Variable LogicalAnd(const Variable& x, const Variable& y, Site site = Site::current());
Variable LogicalOr(const Variable& x, const Variable& y, Site site = Site::current());
Variable LogicalXor(const Variable& x, const Variable& y, Site site = Site::current());
Variable LogicalNot(const Variable& x, Site site = Site::current());
// Combine the bits of int32 or int64, or bools, element by element, with broadcasting.
Variable BitwiseAnd(const Variable& x, const Variable& y, Site site = Site::current());
Variable BitwiseOr(const Variable& x, const Variable& y, Site site = Site::current());
Variable BitwiseXor(const Variable& x, const Variable& y, Site site = Site::current());
Variable BitwiseNot(const Variable& x, Site site = Site::current());

// Returns whether x has no elements: bool [1].
Variable IsEmpty(const Variable& x, Site site = Site::current());

// Adds `step` to x, which must have one element, in place, and returns x itself.
Variable Increment(const Variable& x, float step = 1.0f, Site site = Site::current());

}  // namespace skiff::layers
