#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays DotReference(const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  const Array& y = inputs.at("Y")[0];
  Array out = x;
  out.shape = x.shape.rank() == 1 ? Shape{} : Shape{x.shape[0]};
  out.values.assign(static_cast<size_t>(out.shape.element_count()), 0.0);
  const auto size = static_cast<size_t>(x.shape.dim(-1));
  for (size_t i = 0; i < x.values.size(); ++i) out.values[i / size] += x.values[i] * y.values[i];
  return {{"Out", {out}}};
}

OpCase DotCase(const std::string& name, const Array& x, const Array& y) {
  return {.name = name,
          .type = "dot",
          .inputs = {{"X", {x}}, {"Y", {y}}},
          .reference = DotReference,
          .outputs = {{"Out", 1}}};
}

OpCase DotCase(const std::string& name, const Shape& shape) {
  OpCase result = DotCase(name, Uniform(shape, 3), Uniform(shape, 4));
  result.gradients = {"X", "Y"};
  return result;
}

}  // namespace

void AddDotCases(CaseList& cases) {
  cases.push_back(DotCase("vectors", {7}));
  cases.push_back(DotCase("long_vectors", {40001}));
  cases.push_back(DotCase("rows", {5, 19}));
  cases.push_back(DotCase("long_rows", {3, 9001}));
  cases.push_back(DotCase("columns", {5, 1}));
  cases.push_back(DotCase("no_rows", {0, 3}));
  cases.push_back(DotCase("rows_of_nothing", {3, 0}));
  cases.push_back(DotCase("int32", Integers({3, 9}, 5, -9, 9, DType::kInt32),
                          Integers({3, 9}, 6, -9, 9, DType::kInt32)));
  cases.push_back(DotCase("int64", Integers({9}, 5, -9, 9), Integers({9}, 6, -9, 9)));
}

}  // namespace skiff::harness
