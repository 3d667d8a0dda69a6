// Cases of gather and index_select.
#pragma once

#include <string>

#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

// Out[..., i, ...] = X[..., Index[i], ...] along `axis`, which is written to attribute `attr` as
// `given`. A scalar Index drops the axis.
inline OpCase TakeCase(const std::string& type, const std::string& name, const Array& x,
                       const Array& index, const std::string& attr, int32_t given, int axis) {
  OpCase made{.name = name,
              .type = type,
              .inputs = {{"X", {x}}, {"Index", {index}}},
              .attrs = {{attr, given}},
              .outputs = {{"Out", 1}},
              .gradients = {"X"}};
  if (x.fixed_dtype) made.gradients.clear();
  made.reference = [axis](const Arrays& inputs) {
    const Array& from = inputs.at("X")[0];
    const Array& ids = inputs.at("Index")[0];
    Shape shape = from.shape;
    shape[axis] = static_cast<int64_t>(ids.values.size());
    Array out = Generated(shape, [&](std::vector<int64_t> at) {
      int64_t& place = at[static_cast<size_t>(axis)];
      place = static_cast<int64_t>(ids.values[static_cast<size_t>(place)]);
      return from.values[IndexOf(from.shape, at)];
    });
    if (ids.shape.rank() == 0) {
      Shape dropped;
      for (int k = 0; k < shape.rank(); ++k) {
        if (k != axis) dropped.Append(shape[k]);
      }
      out.shape = dropped;
    }
    return Arrays{{"Out", {TypedLike(out, from)}}};
  };
  return made;
}

}  // namespace skiff::harness
