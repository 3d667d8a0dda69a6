#include <utility>

#include "tests/operators/tensor/along_axis_reference.h"

namespace skiff::harness {
namespace {

Arrays PutAlongAxisReference(const Arrays& inputs, int32_t axis, const std::string& reduce) {
  Array out = inputs.at("Input")[0];
  const Array& value = inputs.at("Value")[0];
  const std::vector<size_t> places =
      NamedPlaces(out.shape, inputs.at("Index")[0], axis < 0 ? axis + out.shape.rank() : axis);
  for (size_t i = 0; i < places.size(); ++i) {
    double& element = out.values[places[i]];
    if (reduce == "assign") element = value.values[i];
    if (reduce == "add") element += value.values[i];
    if (reduce == "mul" || reduce == "multiply") element *= value.values[i];
  }
  return {{"Result", {out}}};
}

}  // namespace

void AddPutAlongAxisCases(CaseList& cases) {
  const auto add_one = [&](const std::string& name, const Array& x, const Array& index,
                           const Array& value, int32_t axis, const std::string& reduce) {
    OpCase made{.name = name + "_" + reduce,
                .type = "put_along_axis",
                .inputs = {{"Input", {x}}, {"Index", {index}}, {"Value", {value}}},
                .attrs = {{"Axis", axis}, {"Reduce", reduce}},
                .outputs = {{"Result", 1}},
                .gradients = {"Input", "Value"}};
    if (x.fixed_dtype) made.gradients.clear();
    made.reference = [=](const Arrays& inputs) {
      return PutAlongAxisReference(inputs, axis, reduce);
    };
    cases.push_back(std::move(made));
  };
  const auto add = [&](const std::string& name, const Array& x, const Array& index, int32_t axis) {
    const Array value = x.fixed_dtype ? Integers(index.shape, 50, -9, 9, x.dtype)
                                      : Uniform(index.shape, 50, 0.5, 1.5);
    for (const char* reduce : {"assign", "add", "mul"}) {
      add_one(name, x, index, value, axis, reduce);
    }
  };
  add("each_once", Uniform({2, 5}, 1), Values({2, 3}, {4, 0, 2, 1, 2, 3}, DType::kInt64), 1);
  add("some_twice", Uniform({2, 5}, 2), Values({2, 4}, {4, 0, 4, 4, 1, 1, 3, 1}, DType::kInt32), 1);
  add("first_axis", Uniform({7, 4}, 3), Integers({9, 4}, 4, 0, 7), 0);
  add("middle_axis", Uniform({3, 5, 4}, 5), Integers({3, 8, 4}, 6, 0, 5), -2);
  add("fewer_rows_and_columns", Uniform({5, 6, 7}, 7), Integers({3, 4, 2}, 8, 0, 6), 1);
  add("fewer_columns_of_rows", Uniform({5, 6}, 9), Integers({8, 2}, 10, 0, 5), 0);
  add("vector", Uniform({9}, 11), Integers({14}, 12, 0, 9), 0);
  add("scalar", Uniform(Shape(), 13), Values(Shape(), {0}, DType::kInt64), 0);
  add("no_indices", Uniform({4, 7}, 14), Integers({4, 0}, 15, 0, 7), 1);
  add("nothing_at_all", Uniform({0, 7}, 16), Integers({0, 3}, 17, 0, 7), 1);
  add("int64", Integers({5, 3}, 18, -9, 9), Integers({5, 4}, 19, 0, 3), 1);
  add("int32", Integers({5, 3}, 20, -9, 9, DType::kInt32), Integers({5, 4}, 21, 0, 3), 1);
  // A quotient of products would be NaN.
  add_one("zeros", Values({3, 2}, {0, 2, 3, 4, 0, 6}),
          Values({3, 3}, {0, 0, 1, 0, 0, 0, 1, 1, 1}, DType::kInt64),
          Values({3, 3}, {2, 3, 4, 0, 5, 6, 0, 0, 7}), 1, "multiply");
  add("several_threads", Uniform({70, 41}, 22), Integers({70, 300}, 23, 0, 41), 1);
  for (size_t i = cases.size() - 3; i < cases.size(); ++i) cases[i].gradients.clear();
  add_one("sums_of_4096x1000", Uniform({4096, 1000}, 24), Integers({4096, 100}, 25, 0, 1000),
          Uniform({4096, 100}, 26), 1, "add");
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
