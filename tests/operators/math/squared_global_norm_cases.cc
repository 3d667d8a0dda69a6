#include <utility>

#include "tests/harness/op_case.h"
#include "tests/harness/selected_rows_cases.h"
#include "tests/operators/scaled_case.h"

namespace skiff::harness {
namespace {

OpCase SquaredGlobalNormCase(const std::string& name, std::vector<Array> tensors,
                             bool is_wide = false) {
  return {.name = name,
          .type = "squared_global_norm",
          .inputs = {{"X", std::move(tensors)}},
          .reference =
              [is_wide](const Arrays& inputs) {
                double sum = 0;
                for (const Array& x : inputs.at("X")) {
                  const Array dense = x.is_selected_rows() ? Dense(x) : x;
                  for (const double value : dense.values) sum += value * value;
                }
                return Arrays{
                    {"Out", {is_wide ? Values({1}, {sum}, DType::kFloat64) : Values({1}, {sum})}}};
              },
          .outputs = {{"Out", 1}}};
}

std::vector<Array> Tensors(const std::vector<Shape>& shapes) {
  std::vector<Array> tensors;
  uint64_t seed = 1;
  for (const Shape& shape : shapes) tensors.push_back(Uniform(shape, seed++));
  return tensors;
}

}  // namespace

void AddSquaredGlobalNormCases(CaseList& cases) {
  cases.push_back(SquaredGlobalNormCase("one", Tensors({{5, 7}})));
  cases.push_back(SquaredGlobalNormCase("empty", Tensors({{0, 3}})));
  cases.push_back(SquaredGlobalNormCase("several", Tensors({{5, 7}, Shape(), {0}, {17}})));
  cases.push_back(
      SquaredGlobalNormCase("several_parts", Tensors({{3}, {131, 257}, {16384}, {16385}})));
  for (const auto& [name, rows] : SelectedRowsOfAllKinds()) {
    cases.push_back(SquaredGlobalNormCase(name, {rows}));
    cases.push_back(SquaredGlobalNormCase(name + "_among_others",
                                          {Uniform({5, 7}, 1), rows, rows, Uniform({3}, 2)}));
  }
  for (const double factor : {1.0, 1e25}) {
    std::vector<Array> tensors = Tensors({{5, 7}, {3}, {17000}});
    for (Array& x : tensors) x = Scaled(x, factor);
    cases.push_back(SquaredGlobalNormCase(factor == 1 ? "wide" : "wide_of_huge_numbers", tensors,
                                          /*is_wide=*/true));
    cases.back().attrs = {{"wide_float32", true}};
    cases.back().dtypes = {DType::kFloat32};
  }
  const auto add_halves = [&](const std::string& name, const std::vector<Shape>& shapes,
                              const std::vector<DType>& dtypes) {
    std::vector<Array> tensors = Tensors(shapes);
    for (size_t i = 0; i < tensors.size(); ++i) {
      tensors[i] = Values(tensors[i].shape, tensors[i].values, dtypes[i % dtypes.size()]);
    }
    cases.push_back(SquaredGlobalNormCase(name, std::move(tensors)));
    cases.back().dtypes = {DType::kFloat32};
  };
  add_halves("float16", {{5, 7}}, {DType::kFloat16});
  add_halves("mixed", {{131, 257}, {5, 7}, {4099}, {16385}, {0}},
             {DType::kBFloat16, DType::kFloat32, DType::kFloat16});
}

}  // namespace skiff::harness
