// Cases of collective ops on a single rank: outputs that are the inputs. What several ranks get is
// in the tests of this folder.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {

// Returns a case in which Out[i] is expected to be X[i].
inline OpCase AloneCase(const std::string& type, const std::string& name, std::vector<Array> x,
                        AttributeMap attrs = {}) {
  const auto count = static_cast<int>(x.size());
  return {.name = name,
          .type = type,
          .inputs = {{"X", std::move(x)}},
          .attrs = std::move(attrs),
          .reference =
              [](const Arrays& inputs) {
                return Arrays{{"Out", inputs.at("X")}};
              },
          .outputs = {{"Out", count}}};
}

// Returns such a case with a scalar, with no elements, with odd sizes, and with enough elements for
// several threads.
inline CaseList AloneCases(const std::string& type) {
  return {AloneCase(type, "scalar", {Uniform({}, 1)}),
          AloneCase(type, "empty", {Uniform({0, 3}, 1)}),
          AloneCase(type, "matrix", {Uniform({5, 7}, 1)}),
          AloneCase(type, "large", {Uniform({131, 257}, 1)}),
          AloneCase(type, "int64", {Integers({3, 4}, 1, -9, 9)}),
          AloneCase(type, "int32", {Integers({17}, 1, -9, 9, DType::kInt32)})};
}

}  // namespace skiff::harness
