// The rows of a table, for the cases of lookup_table and lookup_table_v2.
#pragma once

#include <cstddef>

#include "tests/harness/op_case.h"

namespace skiff::harness {

// Returns, in the given shape, the row of W for each of Ids; zeros for the id `padding`, unless
// that is negative.
inline Array LookedUp(const Arrays& inputs, double padding, const Shape& shape) {
  const Array& table = inputs.at("W")[0];
  const auto width = static_cast<size_t>(table.shape[1]);
  Array out{.shape = shape, .values = {}};
  for (const double id : inputs.at("Ids")[0].values) {
    for (size_t column = 0; column < width; ++column) {
      const bool is_padding = padding >= 0 && id == padding;
      out.values.push_back(is_padding ? 0.0
                                      : table.values[static_cast<size_t>(id) * width + column]);
    }
  }
  return out;
}

}  // namespace skiff::harness
