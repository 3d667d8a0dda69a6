#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

void AddDiagCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& diagonal) {
    cases.push_back({.name = name,
                     .type = "diag",
                     .inputs = {{"Diagonal", {diagonal}}},
                     .reference =
                         [](const Arrays& inputs) {
                           const Array& from = inputs.at("Diagonal")[0];
                           const int64_t side = from.shape[0];
                           const Array out = Generated({side, side}, [&](const auto& at) {
                             return at[0] == at[1] ? from.values[static_cast<size_t>(at[0])] : 0.0;
                           });
                           return Arrays{{"Out", {TypedLike(out, from)}}};
                         },
                     .outputs = {{"Out", 1}}});
  };
  add("vector", Uniform({5}, 1));
  add("one", Uniform({1}, 2));
  add("empty", Uniform({0}, 3));
  add("int64", Integers({4}, 4, -9, 9));
}

}  // namespace skiff::harness
