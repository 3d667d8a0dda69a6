#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

void AddTrilTriuCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, int32_t diagonal) {
    for (const bool lower : {false, true}) {
      OpCase made{.name = name + (lower ? "_lower" : "_upper"),
                  .type = "tril_triu",
                  .inputs = {{"X", {x}}},
                  .attrs = {{"diagonal", diagonal}, {"lower", lower}},
                  .outputs = {{"Out", 1}},
                  .gradients = {"X"}};
      if (x.fixed_dtype) made.gradients.clear();
      made.reference = [diagonal, lower](const Arrays& inputs) {
        Array out = inputs.at("X")[0];
        for (size_t i = 0; i < out.values.size(); ++i) {
          const auto at = CoordinatesOf(out.shape, static_cast<int64_t>(i));
          const int64_t distance = at[at.size() - 1] - at[at.size() - 2];
          if (lower ? distance > diagonal : distance < diagonal) out.values[i] = 0.0;
        }
        return Arrays{{"Out", {out}}};
      };
      cases.push_back(std::move(made));
    }
  };
  add("square", Uniform({5, 5}, 1), 0);
  add("wide_above", Uniform({3, 7}, 2), 2);
  add("tall_below", Uniform({7, 3}, 3), -3);
  add("batches", Uniform({2, 3, 4, 5}, 4), 1);
  add("far_above", Uniform({3, 4}, 5), 100);
  add("far_below", Uniform({3, 4}, 6), -100);
  add("no_rows", Uniform({0, 3}, 7), 0);
  add("no_columns", Uniform({3, 0}, 8), 0);
  add("int64", Integers({4, 5}, 9, -9, 9), 0);
  add("bool", Integers({4, 5}, 10, 0, 2, DType::kBool), -1);
  add("large", Uniform({4, 131, 257}, 11), 5);
  for (size_t i = cases.size() - 2; i < cases.size(); ++i) cases[i].gradients.clear();
}

}  // namespace skiff::harness
