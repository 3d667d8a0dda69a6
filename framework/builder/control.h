// Comparisons, logic and counters: what conditions are made of.
#pragma once

#include <source_location>

#include "framework/builder/activation.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

// Element by element, with broadcasting; the result is bool.
Variable Equal(const Variable& x, const Variable& y, Site site = Site::current());
Variable NotEqual(const Variable& x, const Variable& y, Site site = Site::current());
Variable LessThan(const Variable& x, const Variable& y, Site site = Site::current());
Variable LessEqual(const Variable& x, const Variable& y, Site site = Site::current());
Variable GreaterThan(const Variable& x, const Variable& y, Site site = Site::current());
Variable GreaterEqual(const Variable& x, const Variable& y, Site site = Site::current());

// On bools.
Variable LogicalAnd(const Variable& x, const Variable& y, Site site = Site::current());
Variable LogicalOr(const Variable& x, const Variable& y, Site site = Site::current());
Variable LogicalXor(const Variable& x, const Variable& y, Site site = Site::current());
Variable LogicalNot(const Variable& x, Site site = Site::current());

// Adds `step` to a variable of one element, in place: the result is x itself. Error unless x has
// one element.
Variable Increment(const Variable& x, float step = 1.0f, Site site = Site::current());

}  // namespace skiff::layers
