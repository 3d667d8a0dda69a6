#include "tests/operators/half_case.h"

namespace skiff::harness {
namespace {

Arrays MaskedSelectReference(const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  Array y = x;
  y.values.clear();
  for (size_t i = 0; i < x.values.size(); ++i) {
    if (inputs.at("Mask")[0].values[i] != 0) y.values.push_back(x.values[i]);
  }
  y.shape = {static_cast<int64_t>(y.values.size())};
  return {{"Y", {y}}};
}

OpCase MaskedSelectCase(const std::string& name, Array x, Array mask) {
  return {.name = name,
          .type = "masked_select",
          .inputs = {{"X", {std::move(x)}}, {"Mask", {std::move(mask)}}},
          .reference = MaskedSelectReference,
          .outputs = {{"Y", 1}},
          .gradients = {"X"}};
}

// The gradient op by itself.
OpCase MaskedSelectGradCase(const std::string& name, Array x, Array mask, Array y_grad) {
  return {.name = name,
          .type = "masked_select_grad",
          .inputs = {{"X", {std::move(x)}},
                     {"Mask", {std::move(mask)}},
                     {"Y@GRAD", {std::move(y_grad)}}},
          .reference =
              [](const Arrays& inputs) {
                Array x_grad = inputs.at("X")[0];
                size_t selected = 0;
                for (size_t i = 0; i < x_grad.values.size(); ++i) {
                  const bool is_selected = inputs.at("Mask")[0].values[i] != 0;
                  x_grad.values[i] = is_selected ? inputs.at("Y@GRAD")[0].values[selected++] : 0.0;
                }
                return Arrays{{"X@GRAD", {x_grad}}};
              },
          .outputs = {{"X@GRAD", 1}}};
}

Array Mask(const Shape& shape, uint64_t seed) { return Integers(shape, seed, 0, 2, DType::kBool); }

}  // namespace

void AddMaskedSelectCases(CaseList& cases) {
  cases.push_back(MaskedSelectCase("matrix", Uniform({3, 4}, 1), Mask({3, 4}, 2)));
  cases.push_back(MaskedSelectCase("vector", Uniform({13}, 3), Mask({13}, 4)));
  cases.push_back(InHalf(cases.back()));
  cases.push_back(InHalf(MaskedSelectGradCase("gradient", Uniform({2, 3}, 16),
                                              Values({2, 3}, {0, 1, 1, 0, 0, 1}, DType::kBool),
                                              Uniform({3}, 17))));
  cases.push_back(
      MaskedSelectCase("none", Uniform({2, 2}, 5), Values({2, 2}, {0, 0, 0, 0}, DType::kBool)));
  cases.push_back(
      MaskedSelectCase("all", Uniform({2, 2}, 6), Values({2, 2}, {1, 1, 1, 1}, DType::kBool)));
  cases.push_back(MaskedSelectCase("no_elements", Uniform({0, 3}, 7), Mask({0, 3}, 8)));
  cases.push_back(
      MaskedSelectCase("scalar", Uniform(Shape(), 9), Values(Shape(), {1}, DType::kBool)));
  cases.push_back(MaskedSelectCase("many", Uniform({300, 401}, 10), Mask({300, 401}, 11)));
  cases.push_back(MaskedSelectCase("int64", Integers({5, 3}, 12, -9, 9), Mask({5, 3}, 13)));
  cases.back().gradients.clear();
  cases.push_back(MaskedSelectCase("benchmark", Uniform({4096, 512}, 14), Mask({4096, 512}, 15)));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
