#include <cmath>

#include "tests/operators/math/axis_lines.h"
#include "tests/operators/scaled_case.h"

namespace skiff::harness {
namespace {

Arrays NormReference(const Arrays& inputs, int64_t axis, float epsilon) {
  Array out = inputs.at("X")[0];
  const AxisLines lines(out.shape, axis);
  Array norm = out;
  if (norm.shape.rank() > 0)
    norm.shape[static_cast<int>((axis + norm.shape.rank()) % norm.shape.rank())] = 1;
  norm.values.assign(static_cast<size_t>(lines.count()), 0.0);
  for (int64_t line = 0; line < lines.count(); ++line) {
    double squares = static_cast<double>(epsilon);
    for (const double value : lines.Line(out, line)) squares += value * value;
    norm.values[static_cast<size_t>(line)] = std::sqrt(squares);
    for (int64_t i = 0; i < lines.length; ++i) {
      out.values[lines.Place(line, i, lines.length)] /= std::sqrt(squares);
    }
  }
  return {{"Out", {out}}, {"Norm", {norm}}};
}

OpCase NormCase(const std::string& name, const Array& x, int32_t axis, float epsilon = 1e-10f) {
  return {.name = name,
          .type = "norm",
          .inputs = {{"X", {x}}},
          .attrs = {{"axis", axis}, {"epsilon", epsilon}},
          .reference = [=](const Arrays& inputs) { return NormReference(inputs, axis, epsilon); },
          .outputs = {{"Out", 1}, {"Norm", 1}},
          .gradients = {"X"}};
}

// Out@GRAD is such that X@GRAD is near 1.
OpCase NormGradCase(const std::string& name, const Shape& shape, int32_t axis, double factor) {
  const Array x = Scaled(Uniform(shape, 1), factor);
  const AxisLines lines(shape, axis);
  return {.name = name,
          .type = "norm_grad",
          .inputs = {{"X", {x}},
                     {"Norm", NormReference({{"X", {x}}}, axis, 0).at("Norm")},
                     {"Out@GRAD", {Scaled(Uniform(shape, 2), factor)}}},
          .attrs = {{"axis", axis}, {"epsilon", 0.0f}},
          .reference =
              [=](const Arrays& inputs) {
                Array dx = inputs.at("Out@GRAD")[0];
                for (int64_t line = 0; line < lines.count(); ++line) {
                  const std::vector<double> of_x = lines.Line(inputs.at("X")[0], line);
                  const std::vector<double> of_dout = lines.Line(inputs.at("Out@GRAD")[0], line);
                  double squares = 0;
                  double product = 0;
                  for (size_t i = 0; i < of_x.size(); ++i) {
                    squares += of_x[i] * of_x[i];
                    product += of_x[i] * of_dout[i];
                  }
                  for (size_t i = 0; i < of_x.size(); ++i) {
                    dx.values[lines.Place(line, static_cast<int64_t>(i), lines.length)] =
                        (of_dout[i] - of_x[i] * product / squares) / std::sqrt(squares);
                  }
                }
                return Arrays{{"X@GRAD", {dx}}};
              },
          .outputs = {{"X@GRAD", 1}}};
}

}  // namespace

void AddNormCases(CaseList& cases) {
  cases.push_back(NormCase("rows", Uniform({4, 17}, 1), 1));
  cases.push_back(NormCase("first_axis", Uniform({5, 19}, 1), 0));
  cases.push_back(NormCase("channels", Uniform({2, 3, 4, 5}, 1), -3));
  cases.push_back(NormCase("vector", Uniform({21}, 1), 0));
  cases.push_back(NormCase("scalar", Uniform({}, 1, 0.5, 2), 0, 0.25f));
  cases.push_back(NormCase("epsilon", Uniform({4, 5}, 1), 1, 0.5f));
  cases.push_back(NormCase("long_rows", Uniform({2, 9001}, 1), 1));
  cases.push_back(NormCase("long_rows_in_vectors", Uniform({3, 4100}, 1), 1));
  cases.push_back(NormCase("long_columns", Uniform({4097, 5}, 1), 0));
  cases.push_back(NormCase("long_columns_in_vectors", Uniform({2, 4099, 8}, 1), 1));
  cases.push_back(NormCase("rows_of_blocks", Uniform({2, 3001}, 1), 1));
  cases.push_back(NormCase("rows_of_packs", Uniform({37, 12}, 1), 1));
  cases.push_back(NormCase("long_rows_of_packs", Uniform({3, 260}, 1), 1));
  cases.push_back(NormCase("no_rows", Uniform({0, 5}, 1), 1));
  cases.push_back(NormCase("lines_of_nothing", Uniform({0, 5}, 1), 0, 0.25f));
  Array zeros = Uniform({3, 4}, 1);
  for (size_t i = 4; i < 8; ++i) zeros.values[i] = 0;
  cases.push_back(NormCase("row_of_zeros", zeros, 1, 0.25f));
  OpCase test = NormCase("is_test", Uniform({4, 5}, 1), 1);
  test.attrs["is_test"] = true;
  test.outputs = {{"Out", 1}};
  test.gradients = {};
  test.reference = [](const Arrays& inputs) {
    Arrays expected = NormReference(inputs, 1, 1e-10f);
    expected.erase("Norm");
    return expected;
  };
  cases.push_back(test);
  for (const int64_t size : {15, 16, 17, 64, 100, 1300, 5003}) {
    const std::string name = "of_" + std::to_string(size);
    const auto add = [&](const std::string& what, const Shape& shape, int32_t axis) {
      const OpCase one = NormCase(what + name, Uniform(shape, 1), axis, 0);
      cases.push_back(WithScaledX(one, "huge", 1e20));
      cases.push_back(WithScaledX(one, "tiny", 1e-22));
      // Float32 holds no norm of many of these.
      cases.push_back(WithScaledX(one, "near_the_end", 3e38, {"Norm"}));
      cases.push_back(NormGradCase("gradient_of_huge_" + what + name, shape, axis, 1e20));
      cases.push_back(NormGradCase("gradient_of_tiny_" + what + name, shape, axis, 1e-22));
    };
    add("rows_", {3, size}, 1);
    add("columns_", {size, 5}, 0);
  }
  cases.push_back(NormCase("embeddings_4096x768", Uniform({4096, 768}, 1), 1));
  cases.back().benchmark_only = true;
  cases.push_back(NormCase("vector_of_4194304", Uniform({1 << 22}, 1), 0));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
