#include <cmath>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays CosSimReference(const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  const Array& y = inputs.at("Y")[0];
  const auto rows = static_cast<size_t>(x.shape[0]);
  const auto y_rows = static_cast<size_t>(y.shape[0]);
  const auto size = static_cast<size_t>(x.shape.element_count(1, x.shape.rank()));
  const auto dot = [size](const double* a, const double* b) {
    double sum = 0;
    for (size_t i = 0; i < size; ++i) sum += a[i] * b[i];
    return sum;
  };
  std::vector<double> out;
  std::vector<double> x_norms;
  std::vector<double> y_norms;
  for (size_t row = 0; row < y_rows; ++row) {
    const double* b = y.values.data() + row * size;
    y_norms.push_back(std::sqrt(dot(b, b)));
  }
  for (size_t row = 0; row < rows; ++row) {
    const double* a = x.values.data() + row * size;
    const size_t other = y_rows == rows ? row : 0;
    x_norms.push_back(std::sqrt(dot(a, a)));
    out.push_back(dot(a, y.values.data() + other * size) / x_norms.back() / y_norms[other]);
  }
  return {{"Out", {Values({x.shape[0], 1}, out)}},
          {"XNorm", {Values({x.shape[0], 1}, x_norms)}},
          {"YNorm", {Values({y.shape[0], 1}, y_norms)}}};
}

OpCase CosSimCase(const std::string& name, const Shape& x, const Shape& y) {
  return {.name = name,
          .type = "cos_sim",
          .inputs = {{"X", {Uniform(x, 1)}}, {"Y", {Uniform(y, 2)}}},
          .reference = CosSimReference,
          .outputs = {{"Out", 1}, {"XNorm", 1}, {"YNorm", 1}},
          .gradients = {"X", "Y"},
          .loss_outputs = {"Out"}};
}

}  // namespace

void AddCosSimCases(CaseList& cases) {
  cases.push_back(CosSimCase("rows", {4, 17}, {4, 17}));
  cases.push_back(CosSimCase("one_row_each", {1, 9}, {1, 9}));
  cases.push_back(CosSimCase("one_y_for_all", {5, 9}, {1, 9}));
  cases.push_back(CosSimCase("one_long_y_for_all", {3, 700}, {1, 700}));
  cases.push_back(CosSimCase("rank_3", {3, 2, 5}, {3, 2, 5}));
  cases.push_back(CosSimCase("no_rows", {0, 5}, {0, 5}));
  cases.push_back(CosSimCase("no_rows_of_x", {0, 5}, {1, 5}));
}

}  // namespace skiff::harness
