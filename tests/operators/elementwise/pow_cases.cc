#include <cmath>
#include <string>
#include <utility>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {
namespace {

std::string FactorName(float factor) {
  const auto tenths = static_cast<int>(std::lround(factor * 10));
  return (tenths < 0 ? "minus_" : "") + std::to_string(std::abs(tenths)) + "_tenths";
}

OpCase PowCase(const std::string& name, Array x, float factor) {
  OpCase one = UnaryCase(name, "pow", std::move(x),
                         [factor](double value) { return std::pow(value, factor); });
  one.attrs = {{"factor", factor}};
  return one;
}

}  // namespace

void AddPowCases(CaseList& cases) {
  for (const float factor :
       {2.0f, 1.0f, 0.0f, 3.0f, 7.0f, -1.0f, -2.0f, 0.5f, -1.5f, 2.7f, 20.0f}) {
    OpCase one = PowCase("factor_" + FactorName(factor), Uniform({3, 5, 7}, 20, 0.4, 1.6), factor);
    one.gradients = {"X"};
    cases.push_back(std::move(one));
  }
  for (const float factor : {2.0f, 5.0f, -3.0f}) {
    OpCase one = PowCase("negative_x_factor_" + FactorName(factor),
                         Uniform({3, 5, 7}, 21, -1.6, -0.4), factor);
    one.gradients = {"X"};
    cases.push_back(std::move(one));
  }
  CaseList shapes;
  AddUnaryCases(
      "pow", [](double x) { return x * x * x; }, -1, 1, {}, {{"factor", 3.0f}}, shapes);
  AddUnaryCases(
      "pow", [](double x) { return std::pow(x, 1.5); }, 0.2, 2, {}, {{"factor", 1.5f}}, shapes);
  for (OpCase& one : shapes) {
    one.name += "_factor_" + FactorName(std::get<float>(one.attrs.at("factor")));
    cases.push_back(std::move(one));
  }
  // The default, 1.
  cases.push_back(UnaryCase("no_factor", "pow", Uniform({5}, 22), [](double x) { return x; }));
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64}) {
    const bool is_integer = dtype == DType::kInt32 || dtype == DType::kInt64;
    const double factor = is_integer ? 3 : 2.5;
    OpCase one = PowCase("factor_tensor_" + std::string(DTypeName(dtype)),
                         Uniform({3, 17}, 23, 0.4, 1.6), 9);
    one.inputs["FactorTensor"] = {Values({1}, {factor}, dtype)};
    one.reference = UnaryReference([factor](double x) { return std::pow(x, factor); });
    one.gradients = {"X"};
    cases.push_back(std::move(one));
  }
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    const std::string name(DTypeName(dtype));
    cases.push_back(PowCase(name, Integers({5, 7}, 24, -9, 9, dtype), 3));
    cases.push_back(PowCase(name + "_to_the_0", Integers({5, 7}, 25, -9, 9, dtype), 0));
    OpCase cut = PowCase(name + "_cut_factor", Integers({5, 7}, 26, -9, 9, dtype), 2.75);
    cut.reference = UnaryReference([](double x) { return x * x; });
    cases.push_back(std::move(cut));
  }
}

}  // namespace skiff::harness
