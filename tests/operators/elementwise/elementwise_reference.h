// References of element-wise ops in float64, element by element, and the cases that all ops of one
// kind share.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {

using UnaryFunction = std::function<double(double)>;
using BinaryFunction = std::function<double(double, double)>;

// Out = f(X) in the dtype of X.
inline std::function<Arrays(const Arrays&)> UnaryReference(UnaryFunction f) {
  return [f = std::move(f)](const Arrays& inputs) {
    Array out = inputs.at("X")[0];
    for (double& value : out.values) value = f(value);
    return Arrays{{"Out", {out}}};
  };
}

inline OpCase UnaryCase(const std::string& name, const std::string& type, Array x,
                        UnaryFunction f) {
  OpCase result{.name = name,
                .type = type,
                .inputs = {{"X", {std::move(x)}}},
                .reference = UnaryReference(std::move(f)),
                .outputs = {{"Out", 1}}};
  return result;
}

// The shapes at which loops may go wrong: a single element, fewer and more than a vector holds,
// channels that fill a block or don't, no elements, and enough for several threads.
inline std::vector<std::pair<std::string, Shape>> UnaryShapes() {
  return {{"one_element", {1}},
          {"rank_0", Shape()},
          {"odd_size", {3, 5, 7}},
          {"no_elements", {4, 0}},
          {"image_1_channel", {2, 1, 3, 3}},
          {"image_3_channels", {2, 3, 5, 2}},
          {"image_16_channels", {2, 16, 3, 3}},
          {"image_17_channels", {2, 17, 3, 3}}};
}

// Cases of `type` on values of [low, high) that keep away from `kinks`, where the slope jumps.
inline void AddUnaryCases(const std::string& type, const UnaryFunction& f, double low, double high,
                          const std::vector<double>& kinks, const AttributeMap& attrs,
                          CaseList& cases) {
  uint64_t seed = 1;
  for (const auto& [name, shape] : UnaryShapes()) {
    OpCase one = UnaryCase(name, type, UniformAwayFrom(shape, seed++, kinks, 0.01, low, high), f);
    one.attrs = attrs;
    one.gradients = {"X"};
    cases.push_back(std::move(one));
  }
  OpCase threads = UnaryCase("several_threads", type,
                             UniformAwayFrom({70003}, seed++, kinks, 0.01, low, high), f);
  threads.attrs = attrs;
  cases.push_back(std::move(threads));
  OpCase large = UnaryCase("4M_elements", type, Uniform({1024, 4096}, seed, low, high), f);
  large.attrs = attrs;
  large.benchmark_only = true;
  cases.push_back(std::move(large));
}

// What an op makes of minus infinity and of infinity.
struct Limits {
  double below;
  double above;
};

// Cases of `type` and of its gradient op, which reads X, at infinities. A finite limit of the
// gradient is also that at large finite numbers, up to the last one of float32.
inline void AddLimitCases(const std::string& name, const std::string& type,
                          const AttributeMap& attrs, const Limits& of_out, const Limits& of_slope,
                          CaseList& cases) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto add = [&](const std::string& at, double x, double out, double slope) {
    const auto all = [](double value) { return Values({19}, std::vector<double>(19, value)); };
    if (std::isinf(x)) {
      cases.push_back(UnaryCase(name + "at_" + at, type, all(x), [=](double) { return out; }));
      cases.back().attrs = attrs;
    }
    cases.push_back({.name = name + "gradient_at_" + at,
                     .type = type + "_grad",
                     .inputs = {{"X", {all(x)}}, {"Out@GRAD", {all(0.5)}}},
                     .attrs = attrs,
                     .reference =
                         [=](const Arrays&) {
                           return Arrays{{"X@GRAD", {all(0.5 * slope)}}};
                         },
                     .outputs = {{"X@GRAD", 1}}});
  };
  add("minus_infinity", -kInfinity, of_out.below, of_slope.below);
  add("infinity", kInfinity, of_out.above, of_slope.above);
  add("minus_1e18", -1e18, of_out.below, of_slope.below);
  add("1e18", 1e18, of_out.above, of_slope.above);
  constexpr double kLast = std::numeric_limits<float>::max();
  add("the_lowest_number", -kLast, of_out.below, of_slope.below);
  add("the_largest_number", kLast, of_out.above, of_slope.above);
}

// The shape of lower rank, put at `axis` of the other one, with dims of 1 around it.
inline Shape AlignedShape(const Shape& small, const Shape& large, int64_t axis) {
  const int64_t start = axis == -1 ? large.rank() - small.rank() : axis;
  Shape aligned;
  for (int i = 0; i < large.rank(); ++i) {
    const bool inside = i >= start && i < start + small.rank();
    aligned.Append(inside ? small[i - static_cast<int>(start)] : 1);
  }
  return aligned;
}

// The element of an operand of shape `shape` at position `index` of the result.
inline size_t OperandIndex(const Shape& shape, const Shape& out, int64_t index) {
  int64_t position = 0;
  int64_t stride = 1;
  for (int i = out.rank() - 1; i >= 0; --i) {
    const int64_t coordinate = index % out[i];
    index /= out[i];
    if (shape[i] != 1) position += coordinate * stride;
    stride *= shape[i];
  }
  return static_cast<size_t>(position);
}

inline Array ApplyBinary(const Array& x, const Array& y, int64_t axis, const BinaryFunction& f) {
  const bool y_is_small = x.shape.rank() >= y.shape.rank();
  const Shape x_shape = y_is_small ? x.shape : AlignedShape(x.shape, y.shape, axis);
  const Shape y_shape = y_is_small ? AlignedShape(y.shape, x.shape, axis) : y.shape;
  Array out = x;
  out.shape = Shape();
  for (int i = 0; i < x_shape.rank(); ++i) {
    out.shape.Append(x_shape[i] == 1 ? y_shape[i] : x_shape[i]);
  }
  out.values.resize(static_cast<size_t>(out.shape.element_count()));
  for (size_t i = 0; i < out.values.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    out.values[i] = f(x.values[OperandIndex(x_shape, out.shape, index)],
                      y.values[OperandIndex(y_shape, out.shape, index)]);
  }
  return out;
}

inline OpCase BinaryCase(const std::string& name, const std::string& type, Array x, Array y,
                         int32_t axis, BinaryFunction f) {
  OpCase result{
      .name = name,
      .type = type,
      .inputs = {{"X", {std::move(x)}}, {"Y", {std::move(y)}}},
      .reference =
          [axis, f = std::move(f)](const Arrays& inputs) {
            return Arrays{{"Out", {ApplyBinary(inputs.at("X")[0], inputs.at("Y")[0], axis, f)}}};
          },
      .outputs = {{"Out", 1}}};
  if (axis != -1) result.attrs = {{"axis", axis}};
  return result;
}

struct BinaryShapes {
  std::string name;
  Shape x;
  Shape y;
  int32_t axis = -1;
};

// Every kind of broadcasting.
inline std::vector<BinaryShapes> AllBinaryShapes() {
  return {{"same_shape", {3, 5, 7}, {3, 5, 7}},
          {"one_element", {1}, {1}},
          {"rank_0", Shape(), Shape()},
          {"no_elements", {0, 3}, {3}},
          {"image_1_channel", {2, 1, 3, 3}, {2, 1, 3, 3}},
          {"image_16_channels", {2, 16, 3, 3}, {2, 16, 3, 3}},
          {"image_17_channels", {2, 17, 3, 3}, {2, 17, 3, 3}},
          {"scalar_y", {5, 19}, {1}},
          {"scalar_x", {1}, {5, 19}},
          {"rank_0_y", {5, 19}, Shape()},
          {"row", {6, 33}, {33}},
          {"row_at_axis_1", {6, 33}, {33}, 1},
          {"column", {6, 33}, {6, 1}},
          {"column_at_axis_0", {6, 33}, {6}, 0},
          {"channel_bias", {2, 17, 3, 5}, {17}, 1},
          {"two_middle_dims", {2, 3, 4, 5}, {3, 4}, 1},
          {"leading_dims", {2, 3, 4, 5}, {2, 3}, 0},
          {"inner_ones_of_y", {2, 3, 4, 5}, {3, 1}, 1},
          {"x_of_lower_rank", {3, 4}, {2, 3, 4}},
          {"x_of_lower_rank_at_axis_0", {2, 3}, {2, 3, 4}, 0},
          {"both_repeated", {3, 1, 5}, {1, 4, 5}},
          {"outer_product", {7, 1}, {1, 9}},
          {"alternating_ones", {2, 1, 3, 1}, {1, 4, 1, 5}},
          {"attention_mask", {2, 3, 4, 4}, {2, 1, 1, 4}}};
}

// Makes the operands of a case. They get different seeds.
using OperandMaker = std::function<Array(const Shape& shape, uint64_t seed)>;

inline void AddBinaryCases(const std::string& type, const BinaryFunction& f,
                           const OperandMaker& make_x, const OperandMaker& make_y,
                           bool has_gradient, CaseList& cases) {
  uint64_t seed = 100;
  for (const BinaryShapes& shapes : AllBinaryShapes()) {
    OpCase one = BinaryCase(shapes.name, type, make_x(shapes.x, seed), make_y(shapes.y, seed + 1),
                            shapes.axis, f);
    if (has_gradient) one.gradients = {"X", "Y"};
    cases.push_back(std::move(one));
    seed += 2;
  }
  const std::vector<BinaryShapes> threaded = {{"threaded_same_shape", {70003}, {70003}},
                                              {"threaded_row", {301, 257}, {257}},
                                              {"threaded_column", {301, 257}, {301, 1}},
                                              {"threaded_channels", {4, 17, 31, 37}, {17}, 1},
                                              {"threaded_scalar", {70003}, {1}}};
  for (const BinaryShapes& shapes : threaded) {
    cases.push_back(BinaryCase(shapes.name, type, make_x(shapes.x, seed),
                               make_y(shapes.y, seed + 1), shapes.axis, f));
    seed += 2;
  }
  OpCase large = BinaryCase("4M_elements", type, make_x({1024, 4096}, seed),
                            make_y({1024, 4096}, seed + 1), -1, f);
  large.benchmark_only = true;
  cases.push_back(large);
  OpCase bias = BinaryCase("bias_on_4M_elements", type, make_x({1024, 4096}, seed),
                           make_y({4096}, seed + 1), -1, f);
  bias.benchmark_only = true;
  cases.push_back(bias);
}

// Integers in [low, high) of both dtypes, with broadcasting.
inline void AddIntegerBinaryCases(const std::string& type, const BinaryFunction& f, int64_t low,
                                  int64_t high, CaseList& cases) {
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    const std::string name(DTypeName(dtype));
    cases.push_back(BinaryCase(name, type, Integers({5, 7}, 1, low, high, dtype),
                               Integers({5, 7}, 2, low, high, dtype), -1, f));
    cases.push_back(BinaryCase(name + "_row", type, Integers({5, 7}, 3, low, high, dtype),
                               Integers({7}, 4, low, high, dtype), -1, f));
  }
}

// Cases of an op with a bool result on every dtype, on numbers of which many are equal.
inline void AddBoolCases(const std::string& type, const BinaryFunction& f, CaseList& cases) {
  const auto bool_case = [&](const std::string& name, Array x, Array y, int32_t axis) {
    OpCase one = BinaryCase(name, type, std::move(x), std::move(y), axis, f);
    one.reference = [numbers = one.reference](const Arrays& inputs) {
      Arrays outputs = numbers(inputs);
      outputs["Out"][0].fixed_dtype = true;
      outputs["Out"][0].dtype = DType::kBool;
      return outputs;
    };
    return one;
  };
  for (const DType dtype : {DType::kBool, DType::kUint8, DType::kInt32, DType::kInt64,
                            DType::kFloat32, DType::kFloat64}) {
    const int64_t high = dtype == DType::kBool ? 2 : 4;
    const auto numbers = [&](const Shape& shape, uint64_t seed) {
      return Integers(shape, seed, 0, high, dtype);
    };
    const std::string name(DTypeName(dtype));
    cases.push_back(bool_case(name, numbers({5, 9}, 1), numbers({5, 9}, 2), -1));
    cases.push_back(bool_case(name + "_row", numbers({5, 9}, 3), numbers({9}, 4), -1));
    cases.push_back(bool_case(name + "_scalar", numbers({5, 9}, 5), numbers({1}, 6), -1));
    cases.push_back(bool_case(name + "_no_elements", numbers({0, 9}, 7), numbers({9}, 8), -1));
  }
  cases.push_back(
      bool_case("several_threads", Integers({201, 101}, 9, 0, 3), Integers({101}, 10, 0, 3), -1));
}

// Cases of an op that asks of each element whether f holds, on every dtype.
inline void AddPredicateCases(const std::string& type, const std::function<bool(double)>& f,
                              CaseList& cases) {
  const auto add = [&](const std::string& name, Array x) {
    cases.push_back(UnaryCase(name, type, std::move(x), {}));
    cases.back().reference = [f](const Arrays& inputs) {
      const Array& at = inputs.at("X")[0];
      std::vector<double> values;
      for (const double value : at.values) values.push_back(f(value) ? 1 : 0);
      return Arrays{{"Out", {Values(at.shape, values, DType::kBool)}}};
    };
  };
  for (const DType dtype : {DType::kBool, DType::kUint8, DType::kInt32, DType::kInt64,
                            DType::kFloat32, DType::kFloat64}) {
    add(std::string(DTypeName(dtype)), Integers({5, 7}, 1, 0, 2, dtype));
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const double last = dtype == DType::kFloat32 ? std::numeric_limits<float>::max()
                                                 : std::numeric_limits<double>::max();
    add("ends_" + std::string(DTypeName(dtype)),
        Values({2, 4}, {1, kInfinity, 0, -kInfinity, kNan, -kNan, last, -last}, dtype));
  }
  add("rank_0", Values({}, {kNan}));
  add("no_elements", Uniform({0, 7}, 2));
  Array many = Integers({70003}, 3, 0, 2, DType::kFloat32);
  for (size_t i = 0; i < many.values.size(); i += 7) many.values[i] = i % 2 == 0 ? kNan : kInfinity;
  add("several_threads", std::move(many));
}

// Cases of an op that combines bits, on every dtype that has some.
inline void AddBitwiseCases(const std::string& type,
                            const std::function<int64_t(int64_t, int64_t)>& f, CaseList& cases) {
  const BinaryFunction of_numbers = [f](double x, double y) {
    return static_cast<double>(f(static_cast<int64_t>(x), static_cast<int64_t>(y)));
  };
  cases.push_back(BinaryCase("bool", type, Integers({5, 7}, 1, 0, 2, DType::kBool),
                             Integers({5, 7}, 2, 0, 2, DType::kBool), -1, of_numbers));
  AddIntegerBinaryCases(type, of_numbers, -1000, 1000, cases);
  const auto add = [&](const std::string& name, const Shape& x, const Shape& y) {
    cases.push_back(BinaryCase(name, type, Integers(x, 3, -99, 99, DType::kInt64),
                               Integers(y, 4, -99, 99, DType::kInt64), -1, of_numbers));
  };
  add("rank_0", {}, {});
  add("no_elements", {0, 3}, {3});
  add("both_repeated", {3, 1, 5}, {1, 4, 5});
  add("several_threads", {201, 101}, {101});
}

}  // namespace skiff::harness
