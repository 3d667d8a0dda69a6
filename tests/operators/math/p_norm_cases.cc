#include <algorithm>
#include <cmath>

#include "tests/operators/math/axis_lines.h"
#include "tests/operators/scaled_case.h"

namespace skiff::harness {
namespace {

struct PNormSpec {
  float order = 2;
  int32_t axis = -1;
  bool keepdim = false;
  bool asvector = false;
};

double NormOf(const std::vector<double>& values, double order) {
  // No power of what the ratios to 1e20 are overflows.
  const double unit = std::abs(values.empty() ? 1 : values[0]) > 1e10 ? 1e20 : 1;
  double total = order == -INFINITY ? INFINITY : 0;
  for (const double value : values) {
    const double size = std::abs(value) / unit;
    if (order == INFINITY) {
      total = std::max(total, size);
    } else if (order == -INFINITY) {
      total = std::min(total, size);
    } else if (order == 0) {
      total += size != 0 ? 1 : 0;
    } else {
      total += std::pow(size, order);
    }
  }
  return std::isinf(order) || order == 0 ? total : unit * std::pow(total, 1 / order);
}

Arrays PNormReference(const Arrays& inputs, const PNormSpec& spec) {
  Array x = inputs.at("X")[0];
  const int rank = x.shape.rank();
  Shape shape;
  for (int axis = 0; axis < rank; ++axis) {
    if (!spec.asvector && axis != (spec.axis + rank) % rank) {
      shape.Append(x.shape[axis]);
    } else if (spec.keepdim) {
      shape.Append(1);
    }
  }
  if (spec.asvector) x.shape = {x.shape.element_count()};
  const AxisLines lines(x.shape, spec.asvector ? 0 : spec.axis);
  std::vector<double> norms;
  for (int64_t line = 0; line < lines.count(); ++line) {
    norms.push_back(NormOf(lines.Line(x, line), static_cast<double>(spec.order)));
  }
  return {{"Out", {Values(shape, norms)}}};
}

OpCase PNormCase(const std::string& name, const Array& x, const PNormSpec& spec) {
  return {.name = name,
          .type = "p_norm",
          .inputs = {{"X", {x}}},
          .attrs = {{"porder", spec.order},
                    {"axis", spec.axis},
                    {"keepdim", spec.keepdim},
                    {"asvector", spec.asvector}},
          .reference = [=](const Arrays& inputs) { return PNormReference(inputs, spec); },
          .outputs = {{"Out", 1}},
          .gradients = {"X"}};
}

// Only the gradient has epsilon, so finite differences can't check it.
OpCase EpsilonCase(const std::string& name, float order) {
  constexpr float kEpsilon = 0.25f;
  Array x = Distinct({4, 7}, 3, 0.3, 2);
  for (size_t i = 0; i < x.values.size(); i += 3) x.values[i] = -x.values[i];
  const auto reference = [order](const Arrays& inputs) {
    Array dx = inputs.at("X")[0];
    for (size_t i = 0; i < dx.values.size(); ++i) {
      const double power = static_cast<double>(order) - 1;
      const double value = dx.values[i];
      const double divisor = std::pow(inputs.at("Out")[0].values[i / 7], power) + kEpsilon;
      dx.values[i] = std::copysign(std::pow(std::abs(value), power), value) / divisor *
                     inputs.at("Out@GRAD")[0].values[i / 7];
    }
    return Arrays{{"X@GRAD", {dx}}};
  };
  return {
      .name = name,
      .type = "p_norm_grad",
      .inputs = {{"X", {x}}, {"Out", {Uniform({4}, 4, 0.5, 2)}}, {"Out@GRAD", {Uniform({4}, 5)}}},
      .attrs = {{"porder", order}, {"epsilon", kEpsilon}},
      .reference = reference,
      .outputs = {{"X@GRAD", 1}}};
}

}  // namespace

void AddPNormCases(CaseList& cases) {
  // Values of distinct magnitudes, far from 0, where the derivative jumps.
  const auto values = [](const Shape& shape) {
    Array x = Distinct(shape, 3, 0.3, 2);
    for (size_t i = 0; i < x.values.size(); i += 3) x.values[i] = -x.values[i];
    return x;
  };
  const std::vector<std::pair<std::string, float>> orders = {
      {"2", 2.0f},    {"1", 1.0f},       {"0", 0.0f},        {"3", 3.0f},
      {"half", 0.5f}, {"inf", INFINITY}, {"minus_1", -1.0f}, {"minus_inf", -INFINITY}};
  for (const auto& [name, order] : orders) {
    cases.push_back(PNormCase("order_" + name, values({4, 7}), {.order = order}));
    cases.push_back(
        PNormCase("order_" + name + "_columns", values({4, 19}), {.order = order, .axis = 0}));
  }
  cases.push_back(PNormCase("middle_axis", values({2, 5, 3}), {.axis = 1}));
  cases.push_back(PNormCase("kept", values({2, 5, 3}), {.axis = 1, .keepdim = true}));
  cases.push_back(PNormCase("as_vector", values({3, 5}), {.asvector = true}));
  cases.push_back(PNormCase("as_vector_kept", values({3, 5}), {.keepdim = true, .asvector = true}));
  cases.push_back(PNormCase("scalar_as_vector", values({}), {.asvector = true}));
  cases.push_back(PNormCase("vector", values({9}), {.order = 3, .axis = 0}));
  cases.push_back(PNormCase("long_rows", values({2, 9001}), {}));
  cases.push_back(PNormCase("rows_of_packs", values({3, 8}), {.order = 3}));
  cases.push_back(PNormCase("columns_of_packs", values({3, 2, 8}), {.axis = 1}));
  cases.push_back(PNormCase("long_vector_of_order_inf", values({5003}), {.order = INFINITY}));
  cases.push_back(PNormCase("no_rows", values({0, 5}), {}));
  for (const int64_t size : {15, 16, 17, 64, 100, 5003}) {
    const std::string name = "of_" + std::to_string(size);
    for (const auto& [order, text] :
         std::vector<std::pair<float, std::string>>{{2.0f, "2"}, {3.0f, "3"}, {30.0f, "30"}}) {
      const OpCase one =
          PNormCase("order_" + text + "_" + name, values({3, size}), {.order = order});
      cases.push_back(WithScaledX(one, "huge", 1e20));
      if (order == 2) cases.push_back(WithScaledX(one, "tiny", 1e-22));
      // The sum of the powers is no normal number.
      if (order == 30) cases.push_back(WithScaledX(one, "subnormal", 1.6e-11));
    }
  }
  cases.push_back(EpsilonCase("gradient_of_order_1_with_epsilon", 1));
  cases.push_back(EpsilonCase("gradient_of_order_2_with_epsilon", 2));
  cases.push_back(EpsilonCase("gradient_of_order_3_with_epsilon", 3));
  // Fluid's gradient is 0, which isn't the derivative.
  for (const auto& [text, order] : std::vector<std::pair<std::string, float>>{
           {"1", 1.0f}, {"2", 2.0f}, {"1_and_a_half", 1.5f}, {"minus_1", -1.0f}}) {
    Array zeros = values({3, 4});
    for (size_t i = 4; i < 8; ++i) zeros.values[i] = 0;
    cases.push_back(PNormCase("zeros_" + text, zeros, {.order = order}));
    cases.back().gradients.clear();
  }
}

}  // namespace skiff::harness
