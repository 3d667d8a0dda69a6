#include "tests/operators/half_case.h"
#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {
namespace {

Arrays WhereIndexReference(const Arrays& inputs) {
  const Array& condition = inputs.at("Condition")[0];
  std::vector<double> found;
  int64_t count = 0;
  for (size_t i = 0; i < condition.values.size(); ++i) {
    if (condition.values[i] == 0) continue;
    ++count;
    for (const int64_t at : CoordinatesOf(condition.shape, static_cast<int64_t>(i)))
      found.push_back(static_cast<double>(at));
  }
  return {{"Out", {Values({count, condition.shape.rank()}, found, DType::kInt64)}}};
}

OpCase WhereIndexCase(const std::string& name, Array condition) {
  return {.name = name,
          .type = "where_index",
          .inputs = {{"Condition", {std::move(condition)}}},
          .reference = WhereIndexReference,
          .outputs = {{"Out", 1}}};
}

}  // namespace

void AddWhereIndexCases(CaseList& cases) {
  cases.push_back(WhereIndexCase("bools", Integers({3, 4}, 1, 0, 2, DType::kBool)));
  cases.push_back(WhereIndexCase("int32", Integers({2, 3, 4}, 2, -1, 2, DType::kInt32)));
  cases.push_back(WhereIndexCase("int64", Integers({13}, 3, -1, 2)));
  cases.push_back(WhereIndexCase("floats", Values({2, 3}, {0, -0.0, 1e-30, 0.5, 0, -2})));
  cases.push_back(InHalf(cases.back()));
  cases.push_back(WhereIndexCase("none", Values({2, 2}, {0, 0, 0, 0}, DType::kBool)));
  cases.push_back(WhereIndexCase("all", Values({2, 2}, {1, 1, 1, 1}, DType::kBool)));
  cases.push_back(WhereIndexCase("no_elements", Integers({0, 3}, 4, 0, 2, DType::kBool)));
  cases.push_back(WhereIndexCase("scalar", Values(Shape(), {1}, DType::kBool)));
  cases.push_back(WhereIndexCase("many", Integers({300, 401}, 5, 0, 2, DType::kBool)));
  cases.push_back(WhereIndexCase("benchmark", Integers({4096, 512}, 6, 0, 2, DType::kBool)));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
