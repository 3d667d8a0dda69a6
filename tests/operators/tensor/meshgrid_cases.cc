#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

void AddMeshgridCases(CaseList& cases) {
  const auto add = [&](const std::string& name, std::vector<Array> xs) {
    OpCase made{
        .name = name, .type = "meshgrid", .inputs = {{"X", std::move(xs)}}, .gradients = {"X"}};
    const std::vector<Array>& given = made.inputs["X"];
    made.outputs = {{"Out", static_cast<int>(given.size())}};
    if (given[0].fixed_dtype) made.gradients.clear();
    made.reference = [](const Arrays& inputs) {
      const std::vector<Array>& vectors = inputs.at("X");
      Shape grid;
      for (const Array& x : vectors) grid.Append(static_cast<int64_t>(x.values.size()));
      std::vector<Array> out;
      for (size_t k = 0; k < vectors.size(); ++k) {
        const Array along = Generated(grid, [&](const std::vector<int64_t>& at) {
          return vectors[k].values[static_cast<size_t>(at[k])];
        });
        out.push_back(TypedLike(along, vectors[k]));
      }
      return Arrays{{"Out", out}};
    };
    cases.push_back(std::move(made));
  };
  add("two", {Uniform({3}, 1), Uniform({5}, 2)});
  add("three", {Uniform({3}, 3), Uniform({1}, 4), Uniform({4}, 5)});
  add("with_a_scalar", {Uniform({3}, 6), Uniform(Shape(), 7)});
  add("empty", {Uniform({3}, 8), Uniform({0}, 9)});
  add("int64", {Integers({3}, 10, -9, 9), Integers({2}, 11, -9, 9)});
  add("anchors", {Uniform({130}, 12), Uniform({257}, 13)});
  cases.back().gradients.clear();
}

}  // namespace skiff::harness
