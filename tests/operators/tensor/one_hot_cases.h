// Cases of one_hot and one_hot_v2.
#pragma once

#include <string>

#include "tests/harness/op_case.h"

namespace skiff::harness {

// `leading` are the dims of Out without the last.
inline OpCase OneHotCase(const std::string& type, const std::string& name, const Array& ids,
                         Shape leading, int32_t depth, DType dtype, bool allow_out_of_range) {
  OpCase made{.name = name,
              .type = type,
              .inputs = {{"X", {ids}}},
              .attrs = {{"depth", depth}, {"dtype", static_cast<int32_t>(dtype)}},
              .outputs = {{"Out", 1}},
              .dtypes = {DType::kFloat32}};
  if (allow_out_of_range) made.attrs["allow_out_of_range"] = true;
  leading.Append(depth);
  made.reference = [leading, depth, dtype](const Arrays& inputs) {
    std::vector<double> values;
    for (const double id : inputs.at("X")[0].values) {
      for (int32_t k = 0; k < depth; ++k) values.push_back(id == k ? 1.0 : 0.0);
    }
    return Arrays{{"Out", {Values(leading, values, dtype)}}};
  };
  return made;
}

}  // namespace skiff::harness
