#include <cmath>
#include <limits>
#include <utility>

#include "tests/harness/array_tensor.h"
#include "tests/harness/op_case.h"
#include "tests/harness/selected_rows_cases.h"
#include "tests/operators/optimizer/scaled_gradients_case.h"

namespace skiff::harness {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Arrays UnscaledReference(const Arrays& inputs) {
  const double factor = 1 / inputs.at("Scale")[0].values[0];
  Arrays outputs;
  bool found = false;
  for (const Array& x : inputs.at("X")) {
    Array out = x;
    for (double& value : out.values) value *= factor;
    if (out.fixed_dtype) out = ToArray(ToTensor(out, out.dtype));  // rounded
    for (const double value : out.values) found = found || !std::isfinite(value);
    outputs["Out"].push_back(std::move(out));
  }
  outputs["FoundInfinite"] = {Values({1}, {found ? 1.0 : 0.0}, DType::kBool)};
  return outputs;
}

OpCase UnscaleCase(const std::string& name, std::vector<Array> tensors, const Array& scale) {
  const int count = static_cast<int>(tensors.size());
  return {.name = name,
          .type = "check_finite_and_unscale",
          .inputs = {{"X", std::move(tensors)}, {"Scale", {scale}}},
          .reference = UnscaledReference,
          .outputs = {{"Out", count}, {"FoundInfinite", 1}}};
}

OpCase UnscaleCase(const std::string& name, std::vector<Array> tensors, double scale = 8) {
  return UnscaleCase(name, std::move(tensors), Values({1}, {scale}));
}

// With one element in the last tensor that has more than one.
std::vector<Array> WithElement(std::vector<Array> tensors, double value) {
  for (size_t i = tensors.size(); i-- > 0;) {
    const size_t count = tensors[i].values.size();
    if (count < 2) continue;
    tensors[i].values[count - 2] = value;
    break;
  }
  return tensors;
}

void AddUnscaledHalves(CaseList& cases) {
  const std::vector<Shape> shapes = {{131, 67}, {5, 7}, {0}, {4099}, {17}};
  const auto add = [&](const std::string& name, const std::vector<Array>& tensors, double scale,
                       double tolerance = 0) {
    cases.push_back(UnscaleCase(name, tensors, Values({1}, {scale}, DType::kFloat32)));
    cases.back().dtypes = {DType::kFloat32};
    cases.back().float32_tolerance = tolerance;
  };
  for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
    const std::string name(DTypeName(half));
    const std::vector<Array> tensors = ScaledGradientsOf(shapes, {half});
    add(name, tensors, 1024);
    // Rounded to float32 and then to the half, which may choose the other neighbour.
    add(name + "_scale_3", tensors, 3, half == DType::kFloat16 ? 0x1p-10 : 0x1p-7);
    add(name + "_infinity", WithElement(tensors, kInf), 1024);
    add(name + "_nan", WithElement(tensors, std::nan("")), 1024);
    for (const auto& [rows_name, rows] : SelectedRowsOfAllKinds()) {
      Array halves = rows;
      halves.fixed_dtype = true;
      halves.dtype = half;
      add(name + "_" + rows_name, {halves}, 1024);
    }
  }
  add("all_dtypes",
      ScaledGradientsOf(shapes,
                        {DType::kFloat16, DType::kFloat64, DType::kBFloat16, DType::kFloat32}),
      1024);
  // The halves become subnormal, or 0.
  add("vanishing", ScaledGradientsOf({{5, 7}, {300}}, {DType::kFloat16}), 0x1p24);
  // X is finite, and Out isn't.
  add("float16_overflow", {Values({3}, {1, 40000, 2}, DType::kFloat16)}, 0.5);
  add("bfloat16_overflow", {Values({3}, {1, 3e38, 2}, DType::kBFloat16)}, 0.5);
  add("float32_overflow", {Values({3}, {1, -3e38, 2}, DType::kFloat32)}, 0.5);
}

}  // namespace

void AddCheckFiniteAndUnscaleCases(CaseList& cases) {
  const std::vector<Array> list = ScaledGradientsOf({{5, 7}, {0}, Shape(), {131, 257}, {17}});
  cases.push_back(UnscaleCase("one", ScaledGradientsOf({{5, 7}})));
  cases.push_back(UnscaleCase("scalar", ScaledGradientsOf({Shape()}), Values(Shape(), {4})));
  cases.push_back(UnscaleCase("empty", ScaledGradientsOf({{0, 3}})));
  cases.push_back(UnscaleCase("list", list));
  cases.push_back(UnscaleCase("scale_3", list, 3));
  cases.push_back(UnscaleCase("scale_below_1", list, 0.25));
  cases.push_back(UnscaleCase("infinity", WithElement(list, kInf)));
  cases.push_back(UnscaleCase("minus_infinity", WithElement(list, -kInf)));
  cases.push_back(UnscaleCase("nan", WithElement(list, std::nan(""))));
  // No Out is finite.
  cases.push_back(UnscaleCase("scale_0", ScaledGradientsOf({{5, 7}}), 0));
  // 1 / Scale is 0, but what isn't finite stays so.
  cases.push_back(UnscaleCase("scale_infinity", ScaledGradientsOf({{5, 7}}), kInf));
  cases.push_back(UnscaleCase("infinity_by_infinity", WithElement(list, kInf), kInf));
  // float64 with a scale that the program keeps in float32, and the other way round.
  cases.push_back(UnscaleCase("float64_by_float32", ScaledGradientsOf({{5, 7}}, {DType::kFloat64}),
                              Values({1}, {8}, DType::kFloat32)));
  cases.push_back(UnscaleCase("float32_by_float64", ScaledGradientsOf({{5, 7}}, {DType::kFloat32}),
                              Values({1}, {8}, DType::kFloat64)));
  for (OpCase* made : {&cases[cases.size() - 2], &cases.back()}) made->dtypes = {DType::kFloat32};
  for (const auto& [name, rows] : SelectedRowsOfAllKinds()) {
    cases.push_back(UnscaleCase(name, {rows}));
    cases.push_back(
        UnscaleCase(name + "_among_others",
                    WithElement({Uniform({5, 7}, 1), rows, rows, Uniform({3}, 2)}, std::nan(""))));
  }
  // A row in use isn't finite; others are unused, and hold NaN.
  Array rows = SelectedRowsOfAllKinds().front().second;
  rows.values[12] = kInf;
  cases.push_back(UnscaleCase("selected_rows_infinity", {Uniform({5, 7}, 1), rows}));
  AddUnscaledHalves(cases);

  cases.push_back(UnscaleCase(
      "resnet50_float16", ScaledGradientsOf({{2048, 1000}, {23508032}, {53120}}, {DType::kFloat16}),
      Values({1}, {65536}, DType::kFloat32)));
  cases.back().dtypes = {DType::kFloat32};
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
