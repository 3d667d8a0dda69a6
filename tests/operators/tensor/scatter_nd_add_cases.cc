#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {
namespace {

Arrays Added(const Arrays& inputs) {
  Array out = inputs.at("X")[0];
  const Array& index = inputs.at("Index")[0];
  const Array& updates = inputs.at("Updates")[0];
  const int tuples = index.shape.rank() - 1;
  const auto width = static_cast<size_t>(index.shape[tuples]);
  for (size_t i = 0; i < updates.values.size(); ++i) {
    const auto at = CoordinatesOf(updates.shape, static_cast<int64_t>(i));
    std::vector<int64_t> tuple(at.begin(), at.begin() + tuples);
    std::vector<int64_t> to;
    for (size_t k = 0; k < width; ++k) {
      tuple.push_back(static_cast<int64_t>(k));
      to.push_back(static_cast<int64_t>(index.values[IndexOf(index.shape, tuple)]));
      tuple.pop_back();
    }
    to.insert(to.end(), at.begin() + tuples, at.end());
    out.values[IndexOf(out.shape, to)] += updates.values[i];
  }
  return {{"Out", {out}}};
}

}  // namespace

void AddScatterNdAddCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, const Array& index,
                       const Array& updates) {
    OpCase made{.name = name,
                .type = "scatter_nd_add",
                .inputs = {{"X", {x}}, {"Index", {index}}, {"Updates", {updates}}},
                .reference = Added,
                .outputs = {{"Out", 1}},
                .gradients = {"X", "Updates"},
                .accepted_wrong_inputs = {
                    {"Out@GRAD", "other dims",
                     "nothing but the gradient tells the dims of X that are indexed"}}};
    if (x.fixed_dtype) made.gradients.clear();
    cases.push_back(std::move(made));
  };
  add("elements", Uniform({4, 3}, 1), Values({3, 2}, {0, 2, 3, 1, 0, 2}, DType::kInt64),
      Uniform({3}, 2));
  add("rows_several_times", Uniform({4, 3}, 3), Integers({2, 5, 1}, 4, 0, 4),
      Uniform({2, 5, 3}, 5));
  add("inner_rows", Uniform({3, 3, 5}, 6), Integers({7, 2}, 7, 0, 3, DType::kInt32),
      Uniform({7, 5}, 8));
  add("lone_tuple", Uniform({4, 3}, 9), Values({2}, {1, 2}, DType::kInt64), Uniform(Shape(), 10));
  add("whole_twice", Uniform({4, 3}, 11), Integers({2, 0}, 12, 0, 1), Uniform({2, 4, 3}, 13));
  add("no_tuples", Uniform({4, 3}, 14), Integers({0, 1}, 15, 0, 4), Uniform({0, 3}, 16));
  add("int64", Integers({4, 4}, 17, -9, 9), Integers({6, 2}, 18, 0, 4), Integers({6}, 19, -9, 9));
  add("sums_wrap_around", Values({2}, {2147483647, -2147483648.0}, DType::kInt32),
      Values({2, 1}, {0, 1}, DType::kInt64), Values({2}, {2, -1}, DType::kInt32));
  cases.back().reference = [](const Arrays&) {
    return Arrays{{"Out", {Values({2}, {-2147483647, 2147483647}, DType::kInt32)}}};
  };
  add("wide_rows", Uniform({5, 3001}, 20), Integers({9, 1}, 21, 0, 5), Uniform({9, 3001}, 22));
}

}  // namespace skiff::harness
