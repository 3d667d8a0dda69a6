#include <string>
#include <vector>

#include "tests/operators/tensor/along_axis_reference.h"

namespace skiff::harness {
namespace {

Arrays TakeAlongAxisGradReference(const Arrays& inputs, int32_t axis) {
  Array dx = inputs.at("Input")[0];
  dx.values.assign(dx.values.size(), 0);
  const Array& gradient = inputs.at("Result@GRAD")[0];
  const std::vector<size_t> places = NamedPlaces(dx.shape, inputs.at("Index")[0], axis);
  for (size_t i = 0; i < places.size(); ++i) dx.values[places[i]] += gradient.values[i];
  return {{"Input@GRAD", {dx}}};
}

// Of more elements than finite differences have time for, and an emulated device has for float64,
// too.
OpCase TakeAlongAxisGradCase(const std::string& name, const Array& x, const Array& index,
                             int32_t axis) {
  OpCase made{
      .name = name,
      .type = "take_along_axis_grad",
      .inputs = {{"Input", {x}}, {"Index", {index}}, {"Result@GRAD", {Uniform(index.shape, 50)}}},
      .attrs = {{"Axis", axis}},
      .outputs = {{"Input@GRAD", 1}},
      .dtypes = {DType::kFloat32}};
  made.reference = [axis](const Arrays& inputs) {
    return TakeAlongAxisGradReference(inputs, axis);
  };
  return made;
}

}  // namespace

void AddTakeAlongAxisCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, const Array& index, int32_t axis) {
    OpCase made{.name = name,
                .type = "take_along_axis",
                .inputs = {{"Input", {x}}, {"Index", {index}}},
                .attrs = {{"Axis", axis}},
                .outputs = {{"Result", 1}},
                .gradients = {"Input"}};
    if (x.fixed_dtype) made.gradients.clear();
    made.reference = [axis](const Arrays& inputs) {
      const Array& from = inputs.at("Input")[0];
      const Array& numbers = inputs.at("Index")[0];
      Array out{.shape = numbers.shape, .values = {}};
      for (const size_t place : NamedPlaces(from.shape, numbers, axis)) {
        out.values.push_back(from.values[place]);
      }
      return Arrays{{"Result", {TypedLike(out, from)}}};
    };
    cases.push_back(std::move(made));
  };
  add("last_axis", Uniform({4, 7}, 1), Integers({4, 3}, 2, 0, 7), 1);
  add("first_axis", Uniform({7, 4}, 3), Integers({9, 4}, 4, 0, 7), 0);
  add("middle_axis", Uniform({3, 5, 4}, 5), Integers({3, 8, 4}, 6, 0, 5), 1);
  add("middle_axis_of_few", Uniform({3, 5, 4}, 7), Integers({3, 2, 4}, 8, 0, 5), 1);
  add("four_dims", Uniform({2, 3, 4, 5}, 9), Integers({2, 3, 6, 5}, 10, 0, 4), 2);
  // The action that was taken, of each sample's values: [N, 1].
  add("one_of_each_row", Uniform({17, 3}, 11), Integers({17, 1}, 12, 0, 3), 1);
  add("int32_indices", Uniform({4, 7}, 13), Integers({4, 3}, 14, 0, 7, DType::kInt32), 1);
  add("fewer_rows_and_columns", Uniform({5, 6, 7}, 15), Integers({3, 4, 2}, 16, 0, 6), 1);
  add("fewer_of_all_but_the_last", Uniform({5, 6, 7}, 17), Integers({2, 3, 9}, 18, 0, 7), 2);
  add("fewer_columns_of_rows", Uniform({5, 6}, 19), Integers({8, 2}, 20, 0, 5), 0);
  add("dims_of_one", Uniform({1, 4, 1, 3}, 21), Integers({1, 5, 1, 3}, 22, 0, 4), 1);
  add("vector", Uniform({9}, 23), Integers({14}, 24, 0, 9), 0);
  add("scalar", Uniform(Shape(), 25), Values(Shape(), {0}, DType::kInt64), 0);
  add("no_indices", Uniform({4, 7}, 26), Integers({4, 0}, 27, 0, 7), 1);
  add("no_rows", Uniform({4, 7}, 28), Integers({0, 3}, 29, 0, 7), 1);
  add("nothing_at_all", Uniform({0, 7}, 30), Integers({0, 3}, 31, 0, 7), 1);
  add("int64", Integers({5, 3}, 32, -9, 9), Integers({5, 4}, 33, 0, 3), 1);
  add("bool", Integers({5, 3}, 34, 0, 2, DType::kBool), Integers({2, 3}, 35, 0, 5), 0);
  const auto add_threaded = [&](const std::string& name, const Array& x, const Array& index,
                                int32_t axis) {
    add(name, x, index, axis);
    cases.back().gradients.clear();
    cases.push_back(TakeAlongAxisGradCase("gradient_of_" + name, x, index, axis));
  };
  add_threaded("several_threads", Uniform({70, 41}, 36), Integers({70, 240}, 37, 0, 41), 1);
  add_threaded("columns_of_several_threads", Uniform({40, 130}, 38),
               Integers({130, 130}, 39, 0, 40), 0);
  add("labels_of_4096x1000", Uniform({4096, 1000}, 40), Integers({4096, 1}, 41, 0, 1000), 1);
  cases.back().benchmark_only = true;
  add("nearest_512x512x64", Uniform({512, 512, 64}, 42), Integers({512, 128, 64}, 43, 0, 512), 1);
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
