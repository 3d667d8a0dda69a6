#include <cmath>

#include "tests/harness/op_case.h"
#include "tests/operators/scaled_case.h"

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

// Both operands times a factor, and Out@GRAD too, so that the gradients are near 1.
OpCase CosSimGradCase(const std::string& name, const Shape& x, const Shape& y, double factor) {
  Arrays inputs = {{"X", {Scaled(Uniform(x, 1), factor)}}, {"Y", {Scaled(Uniform(y, 2), factor)}}};
  inputs.merge(CosSimReference(inputs));
  inputs["Out@GRAD"] = {Scaled(Uniform({x[0], 1}, 3), factor)};
  return {
      .name = name,
      .type = "cos_sim_grad",
      .inputs = std::move(inputs),
      .reference =
          [](const Arrays& given) {
            Array dx = given.at("X")[0];
            Array dy = Scaled(given.at("Y")[0], 0);
            const Arrays lengths = CosSimReference({{"X", given.at("X")}, {"Y", given.at("Y")}});
            const auto size = static_cast<size_t>(dx.shape[1]);
            for (size_t i = 0; i < dx.values.size(); ++i) {
              const size_t row = i / size;
              const size_t other = dy.shape[0] == 1 ? 0 : row;
              const double a = given.at("X")[0].values[i];
              const double b = given.at("Y")[0].values[other * size + i % size];
              const double a_length = lengths.at("XNorm")[0].values[row];
              const double b_length = lengths.at("YNorm")[0].values[other];
              const double out = lengths.at("Out")[0].values[row];
              const double dout = given.at("Out@GRAD")[0].values[row];
              dx.values[i] = dout / a_length * (b / b_length - out * a / a_length);
              dy.values[other * size + i % size] +=
                  dout / b_length * (a / a_length - out * b / b_length);
            }
            return Arrays{{"X@GRAD", {dx}}, {"Y@GRAD", {dy}}};
          },
      .outputs = {{"X@GRAD", 1}, {"Y@GRAD", 1}}};
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
  for (const int64_t size : {15, 16, 17, 64, 100}) {
    const std::string name = "of_" + std::to_string(size);
    const auto add = [&](const std::string& what, double factor, const Shape& y,
                         const std::vector<std::string>& left_out) {
      OpCase one = WithScaledX(CosSimCase(name, {3, size}, y), what, factor, left_out);
      one.inputs["Y"][0] = Scaled(one.inputs["Y"][0], factor);
      cases.push_back(one);
    };
    // Float32 holds no such lengths, or few of their digits.
    for (const int64_t rows : {1, 3}) {
      const std::string of_y = "_with_" + std::to_string(rows);
      add("near_the_end" + of_y, 3e38, {rows, size}, {"XNorm", "YNorm"});
      add("near_zero" + of_y, 1e-43, {rows, size}, {"XNorm", "YNorm"});
    }
    for (const auto& [what, factor] :
         std::vector<std::pair<std::string, double>>{{"huge", 1e20}, {"tiny", 1e-22}}) {
      add(what, factor, {3, size}, {});
      cases.push_back(
          CosSimGradCase("gradient_" + name + "_" + what, {3, size}, {3, size}, factor));
      cases.push_back(
          CosSimGradCase("gradient_of_one_y_" + name + "_" + what, {3, size}, {1, size}, factor));
    }
  }
}

}  // namespace skiff::harness
