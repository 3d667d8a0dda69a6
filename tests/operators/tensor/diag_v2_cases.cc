#include <cstdlib>

#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

void AddDiagV2Cases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, int32_t offset, float padding) {
    OpCase made{.name = name,
                .type = "diag_v2",
                .inputs = {{"X", {x}}},
                .attrs = {{"offset", offset}, {"padding_value", padding}},
                .outputs = {{"Out", 1}},
                .gradients = {"X"}};
    if (x.fixed_dtype) made.gradients.clear();
    made.reference = [offset, padding](const Arrays& inputs) {
      const Array& from = inputs.at("X")[0];
      Array out{.values = {}};
      if (from.shape.rank() == 2) {
        for (size_t i = 0; i < from.values.size(); ++i) {
          const auto at = CoordinatesOf(from.shape, static_cast<int64_t>(i));
          if (at[1] - at[0] == offset) out.values.push_back(from.values[i]);
        }
        out.shape = {static_cast<int64_t>(out.values.size())};
      } else {
        const int64_t side = static_cast<int64_t>(from.values.size()) + std::abs(offset);
        out = Generated({side, side}, [&](const std::vector<int64_t>& at) {
          if (at[1] - at[0] != offset) return double{padding};
          return from.values[static_cast<size_t>(offset < 0 ? at[1] : at[0])];
        });
      }
      return Arrays{{"Out", {TypedLike(out, from)}}};
    };
    cases.push_back(std::move(made));
  };
  add("vector", Uniform({5}, 1), 0, 0.0f);
  add("vector_above", Uniform({5}, 2), 2, 7.0f);
  add("vector_below", Uniform({5}, 3), -1, -1.0f);
  add("scalar", Uniform(Shape(), 4), 1, 2.0f);
  add("empty_vector", Uniform({0}, 5), 2, 3.0f);
  add("empty_vector_on_the_diagonal", Uniform({0}, 6), 0, 3.0f);
  add("wide", Uniform({3, 5}, 7), 0, 0.0f);
  add("wide_above", Uniform({3, 5}, 8), 3, 0.0f);
  add("wide_below", Uniform({3, 5}, 9), -2, 0.0f);
  add("tall", Uniform({5, 3}, 10), -1, 0.0f);
  add("past_the_corner", Uniform({3, 5}, 11), 5, 0.0f);
  add("empty_matrix", Uniform({0, 3}, 12), 0, 0.0f);
  add("int64_vector", Integers({4}, 13, -9, 9), 1, -3.0f);
  add("int32_matrix", Integers({4, 4}, 14, -9, 9, DType::kInt32), 1, 0.0f);
}

}  // namespace skiff::harness
