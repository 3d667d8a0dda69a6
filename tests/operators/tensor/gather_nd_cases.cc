#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {
namespace {

Arrays Gathered(const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  const Array& index = inputs.at("Index")[0];
  const int tuples = index.shape.rank() - 1;
  const auto width = static_cast<size_t>(index.shape[tuples]);
  Shape shape(index.shape.dims().first(static_cast<size_t>(tuples)));
  for (int k = static_cast<int>(width); k < x.shape.rank(); ++k) shape.Append(x.shape[k]);
  const Array out = Generated(shape, [&](const std::vector<int64_t>& at) {
    std::vector<int64_t> tuple(at.begin(), at.begin() + tuples);
    std::vector<int64_t> from;
    for (size_t k = 0; k < width; ++k) {
      tuple.push_back(static_cast<int64_t>(k));
      from.push_back(static_cast<int64_t>(index.values[IndexOf(index.shape, tuple)]));
      tuple.pop_back();
    }
    from.insert(from.end(), at.begin() + tuples, at.end());
    return x.values[IndexOf(x.shape, from)];
  });
  return {{"Out", {TypedLike(out, x)}}};
}

}  // namespace

void AddGatherNdCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, const Array& index) {
    OpCase made{.name = name,
                .type = "gather_nd",
                .inputs = {{"X", {x}}, {"Index", {index}}},
                .reference = Gathered,
                .outputs = {{"Out", 1}},
                .gradients = {"X"}};
    if (x.fixed_dtype) made.gradients.clear();
    cases.push_back(std::move(made));
  };
  add("elements", Uniform({4, 3}, 1), Values({3, 2}, {0, 2, 3, 1, 0, 2}, DType::kInt64));
  add("rows", Uniform({4, 3}, 2), Integers({2, 5, 1}, 3, 0, 4));
  add("inner_rows", Uniform({3, 3, 5}, 4), Integers({7, 2}, 5, 0, 3, DType::kInt32));
  add("whole_twice", Uniform({4, 3}, 6), Integers({2, 0}, 7, 0, 1));
  add("no_tuples", Uniform({4, 3}, 8), Integers({0, 2}, 9, 0, 3));
  add("no_columns", Uniform({4, 0}, 10), Integers({3, 1}, 11, 0, 4));
  add("int64", Integers({4, 4}, 12, -9, 9), Integers({6, 2}, 13, 0, 4));
}

}  // namespace skiff::harness
