// The sizes of addmm: Out [m, n] = beta · Input + alpha · X [m, k] · Y [k, n].
#pragma once

#include <cstdint>

#include "framework/tensor/shape.h"

namespace skiff {

struct AddmmSizes {
  // Of shapes that fit.
  static AddmmSizes Of(const Shape& input, const Shape& x, const Shape& y) {
    AddmmSizes sizes{.m = x[0], .k = x[1], .n = y[1]};
    sizes.repeats_rows = (input.rank() == 1 ? 1 : input[0]) == 1 && sizes.m != 1;
    sizes.repeats_columns = input.dim(-1) == 1 && sizes.n != 1;
    return sizes;
  }

  int64_t m = 0;
  int64_t k = 0;
  int64_t n = 0;
  bool repeats_rows = false;  // Input has one row, which is repeated
  bool repeats_columns = false;
};

}  // namespace skiff
