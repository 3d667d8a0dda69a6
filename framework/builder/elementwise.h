// Arithmetic element by element, with broadcasting. Errors of all layers: layers.h.
#pragma once

#include <cstdint>
#include <string>

#include "framework/builder/layers.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

struct ElementwiseOptions {
  // The dim of the operand of higher rank where the other's dims begin; -1: they end together.
  int64_t axis = -1;
  std::string act = {};
};
// x + y, x - y, x · y, x / y, the larger and the smaller of x and y, element by element. The
// operand of lower rank is broadcast.
Variable ElementwiseAdd(const Variable& x, const Variable& y, const ElementwiseOptions& = {},
                        Site site = Site::current());
Variable ElementwiseSub(const Variable& x, const Variable& y, const ElementwiseOptions& = {},
                        Site site = Site::current());
Variable ElementwiseMul(const Variable& x, const Variable& y, const ElementwiseOptions& = {},
                        Site site = Site::current());
Variable ElementwiseDiv(const Variable& x, const Variable& y, const ElementwiseOptions& = {},
                        Site site = Site::current());
Variable ElementwiseMax(const Variable& x, const Variable& y, const ElementwiseOptions& = {},
                        Site site = Site::current());
Variable ElementwiseMin(const Variable& x, const Variable& y, const ElementwiseOptions& = {},
                        Site site = Site::current());
// The remainder of x / y, with the sign of y.
Variable ElementwiseMod(const Variable& x, const Variable& y, const ElementwiseOptions& = {},
                        Site site = Site::current());
// x to the power of y.
Variable ElementwisePow(const Variable& x, const Variable& y, const ElementwiseOptions& = {},
                        Site site = Site::current());
// The largest integer that is no more than x / y.
Variable ElementwiseFloordiv(const Variable& x, const Variable& y, const ElementwiseOptions& = {},
                             Site site = Site::current());
// The same with a number, which is taken in the dtype of x: ElementwiseMax(x, 0.0). All throw an
// Error (kInvalidArgument) if the variable has whole numbers and the number isn't whole.
Variable ElementwiseMax(const Variable& x, double y, Site site = Site::current());
Variable ElementwiseMin(const Variable& x, double y, Site site = Site::current());
Variable ElementwiseMod(const Variable& x, double y, Site site = Site::current());
Variable ElementwisePow(const Variable& x, double y, Site site = Site::current());
Variable ElementwisePow(double x, const Variable& y, Site site = Site::current());
Variable ElementwiseFloordiv(const Variable& x, double y, Site site = Site::current());

struct ScaleOptions {
  float scale = 1.0f;
  float bias = 0.0f;
  bool bias_after_scale = true;
  std::string act = {};
};
// scale · x + bias, or scale · (x + bias).
Variable Scale(const Variable& x, const ScaleOptions& options, Site site = Site::current());

}  // namespace skiff::layers
