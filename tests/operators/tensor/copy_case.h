// A case of an op whose Out is a copy of X.
#pragma once

#include <string>

#include "tests/harness/op_case.h"

namespace skiff::harness {

// A gradient is only checked if X may be of any dtype.
inline OpCase CopyCase(const std::string& type, const std::string& name, const Array& x) {
  OpCase made{.name = name,
              .type = type,
              .inputs = {{"X", {x}}},
              .reference =
                  [](const Arrays& inputs) {
                    return Arrays{{"Out", inputs.at("X")}};
                  },
              .outputs = {{"Out", 1}},
              .gradients = {"X"}};
  if (x.fixed_dtype) made.gradients.clear();
  return made;
}

}  // namespace skiff::harness
