// A case of an op that fills its output by its attributes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "tests/harness/op_case.h"

namespace skiff::harness {

// The attribute dtype is that of `out`.
inline OpCase FillCase(const std::string& type, const std::string& name, AttributeMap attrs,
                       const Array& out) {
  attrs["dtype"] = static_cast<int32_t>(out.dtype);
  return {.name = name,
          .type = type,
          .attrs = std::move(attrs),
          .reference =
              [out](const Arrays&) {
                return Arrays{{"Out", {out}}};
              },
          .outputs = {{"Out", 1}},
          .dtypes = {DType::kFloat32}};
}

}  // namespace skiff::harness
