#include <string>
#include <utility>
#include <vector>

#include "tests/operators/tensor/along_axis_reference.h"

namespace skiff::harness {
namespace {

Arrays PutAlongAxisReference(const Arrays& inputs, int32_t axis, const std::string& reduce) {
  Array out = inputs.at("Input")[0];
  const Array& value = inputs.at("Value")[0];
  const std::vector<size_t> places = NamedPlaces(out.shape, inputs.at("Index")[0], axis);
  for (size_t i = 0; i < places.size(); ++i) {
    double& element = out.values[places[i]];
    if (reduce == "assign") element = value.values[i];
    if (reduce == "add") element += value.values[i];
    if (reduce == "mul" || reduce == "multiply") element *= value.values[i];
  }
  return {{"Result", {out}}};
}

// Fills the gradients that `wanted` names.
Arrays PutAlongAxisGradReference(const Arrays& inputs, int32_t axis, const std::string& reduce,
                                 const std::vector<std::string>& wanted) {
  const Array& x = inputs.at("Input")[0];
  const Array& value = inputs.at("Value")[0];
  const Array& gradient = inputs.at("Result@GRAD")[0];
  const std::vector<size_t> places = NamedPlaces(x.shape, inputs.at("Index")[0], axis);
  std::vector<std::vector<size_t>> positions(x.values.size());  // of each element
  for (size_t i = 0; i < places.size(); ++i) positions[places[i]].push_back(i);
  Array dx = gradient;
  Array dvalue = value;
  for (size_t place = 0; place < positions.size(); ++place) {
    for (const size_t i : positions[place]) {
      double slope = 1;
      if (reduce == "assign") slope = i == positions[place].back() ? 1 : 0;
      if (reduce == "mul") {
        slope = x.values[place];
        for (const size_t other : positions[place]) slope *= other == i ? 1 : value.values[other];
      }
      dvalue.values[i] = gradient.values[place] * slope;
      if (reduce == "assign") dx.values[place] = 0;
      if (reduce == "mul") dx.values[place] *= value.values[i];
    }
  }
  Arrays made;
  for (const std::string& slot : wanted) made[slot] = {slot == "Input@GRAD" ? dx : dvalue};
  return made;
}

OpCase PutAlongAxisGradCase(const std::string& name, const OpCase& of,
                            const std::vector<std::string>& wanted) {
  const auto axis = std::get<int32_t>(of.attrs.at("Axis"));
  const auto reduce = std::get<std::string>(of.attrs.at("Reduce"));
  const Array& x = of.inputs.at("Input")[0];
  OpCase made{.name = name + "_" + reduce,
              .type = "put_along_axis_grad",
              .inputs = of.inputs,
              .attrs = of.attrs,
              .dtypes = of.dtypes};
  made.inputs["Result"] = {x};  // of which only the shape counts
  made.inputs["Result@GRAD"] = {Uniform(x.shape, 51)};
  made.reference = [=](const Arrays& inputs) {
    return PutAlongAxisGradReference(inputs, axis, reduce, wanted);
  };
  for (const std::string& slot : wanted) made.outputs.emplace_back(slot, 1);
  return made;
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
  add("middle_axis", Uniform({3, 5, 4}, 5), Integers({3, 8, 4}, 6, 0, 5), 1);
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
  // Finite differences would take too long for as many elements, and so would an emulated device
  // for more of them, or for float64, too.
  const auto add_threaded = [&](const std::string& name, const Array& x, const Array& index,
                                int32_t axis, const std::string& reduce) {
    add_one(name, x, index, Uniform(index.shape, 24, 0.5, 1.5), axis, reduce);
    cases.back().gradients.clear();
    cases.back().dtypes = {DType::kFloat32};
    return cases.back();
  };
  for (const char* reduce : {"assign", "add", "mul"}) {
    const std::vector<std::string> both = {"Input@GRAD", "Value@GRAD"};
    const OpCase rows = add_threaded("several_threads", Uniform({70, 41}, 22),
                                     Integers({70, 240}, 23, 0, 41), 1, reduce);
    cases.push_back(PutAlongAxisGradCase("gradients_of_several_threads", rows, both));
    const OpCase columns = add_threaded("columns_of_several_threads", Uniform({40, 130}, 28),
                                        Integers({130, 130}, 29, 0, 40), 0, reduce);
    cases.back() = PutAlongAxisGradCase("gradients_of_columns_of_several_threads", columns, both);
  }
  for (const char* reduce : {"assign", "add", "mul"}) {
    add_one("", Uniform({5, 6, 7}, 30), Integers({3, 9, 5}, 31, 0, 6),
            Uniform({3, 9, 5}, 32, 0.5, 1.5), 1, reduce);
    const OpCase forward = cases.back();
    cases.pop_back();
    cases.push_back(PutAlongAxisGradCase("gradient_of_input_alone", forward, {"Input@GRAD"}));
    cases.push_back(PutAlongAxisGradCase("gradient_of_value_alone", forward, {"Value@GRAD"}));
  }
  add_one("sums_of_4096x1000", Uniform({4096, 1000}, 25), Integers({4096, 100}, 26, 0, 1000),
          Uniform({4096, 100}, 27), 1, "add");
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
