// Cases of expand, expand_v2 and tile.
#pragma once

#include <string>

#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

// Out of shape `out`: the element of X at the same place from the back, modulo X's dims.
inline OpCase RepeatCase(const std::string& type, const std::string& name, const Array& x,
                         const std::string& attr, const std::vector<int32_t>& given,
                         const Shape& out) {
  OpCase made{.name = name,
              .type = type,
              .inputs = {{"X", {x}}},
              .attrs = {{attr, given}},
              .outputs = {{"Out", 1}},
              .gradients = {"X"}};
  if (x.fixed_dtype) made.gradients.clear();
  made.reference = [out](const Arrays& inputs) {
    const Array& from = inputs.at("X")[0];
    const int rank = from.shape.rank();
    const Array repeated = Generated(out, [&](std::vector<int64_t> at) {
      at.erase(at.begin(), at.end() - rank);
      for (int axis = 0; axis < rank; ++axis) at[static_cast<size_t>(axis)] %= from.shape[axis];
      return from.values[IndexOf(from.shape, at)];
    });
    return Arrays{{"Out", {TypedLike(repeated, from)}}};
  };
  return made;
}

}  // namespace skiff::harness
