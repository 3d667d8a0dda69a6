#include <algorithm>

#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {
namespace {

Arrays Scattered(const Arrays& inputs, bool overwrite) {
  Array out = inputs.at("X")[0];
  const Array& ids = inputs.at("Ids")[0];
  const Array& updates = inputs.at("Updates")[0];
  const size_t width =
      out.shape[0] == 0 ? 0 : out.values.size() / static_cast<size_t>(out.shape[0]);
  std::vector<bool> named(static_cast<size_t>(out.shape[0]));
  for (size_t i = 0; i < ids.values.size(); ++i) {
    const auto row = static_cast<size_t>(ids.values[i]);
    for (size_t k = 0; k < width; ++k) {
      double& to = out.values[row * width + k];
      const double before = named[row] && !overwrite ? to : 0.0;
      to = before + updates.values[i * width + k];
    }
    named[row] = true;
  }
  return {{"Out", {out}}};
}

}  // namespace

void AddScatterCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, const Array& ids,
                       const Array& updates) {
    for (const bool overwrite : {true, false}) {
      OpCase made{.name = name + (overwrite ? "_overwrite" : "_add"),
                  .type = "scatter",
                  .inputs = {{"X", {x}}, {"Ids", {ids}}, {"Updates", {updates}}},
                  .attrs = {{"overwrite", overwrite}},
                  .outputs = {{"Out", 1}},
                  .gradients = {"X", "Updates"},
                  .accepted_wrong_inputs = {
                      {"Out@GRAD", "other dims", "nothing but the gradient tells the rows of X"}}};
      if (x.fixed_dtype) made.gradients.clear();
      made.reference = [overwrite](const Arrays& inputs) { return Scattered(inputs, overwrite); };
      cases.push_back(std::move(made));
    }
  };
  add("each_once", Uniform({5, 3}, 1), Values({3}, {4, 0, 2}, DType::kInt64), Uniform({3, 3}, 2));
  add("some_twice", Uniform({5, 3, 2}, 3), Values({4}, {1, 3, 1, 1}, DType::kInt32),
      Uniform({4, 3, 2}, 4));
  add("column_of_ids", Uniform({5, 3}, 5), Values({2, 1}, {4, 0}, DType::kInt64),
      Uniform({2, 3}, 6));
  add("scalar_id", Uniform({5, 3}, 7), Values(Shape(), {3}, DType::kInt64), Uniform({3}, 8));
  add("vector", Uniform({7}, 9), Integers({5}, 10, 0, 7), Uniform({5}, 11));
  add("element", Uniform({7}, 12), Values(Shape(), {3}, DType::kInt64), Uniform(Shape(), 13));
  add("no_ids", Uniform({4, 3}, 14), Integers({0}, 15, 0, 4), Uniform({0, 3}, 16));
  add("int64", Integers({4, 3}, 17, -9, 9), Integers({6}, 18, 0, 4), Integers({6, 3}, 19, -9, 9));
  add("wide_rows", Uniform({5, 3001}, 20), Integers({9}, 21, 0, 5), Uniform({9, 3001}, 22));
}

}  // namespace skiff::harness
