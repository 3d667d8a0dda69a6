#include <limits>

#include "tests/operators/tensor/fill_case.h"

namespace skiff::harness {

void AddFillConstantCases(CaseList& cases) {
  const auto add = [&](const std::string& name, DType dtype, const Shape& shape, AttributeMap attrs,
                       double expected) {
    attrs["shape"] = shape.ToVector();
    const size_t count = static_cast<size_t>(shape.element_count());
    cases.push_back(FillCase("fill_constant", name, std::move(attrs),
                             Values(shape, std::vector<double>(count, expected), dtype)));
  };
  add("float32", DType::kFloat32, {2, 3}, {{"value", 1.5f}}, 1.5);
  add("float64", DType::kFloat64, {2, 3}, {{"value", 1.5f}}, 1.5);
  add("default_value", DType::kFloat32, {3}, {}, 0.0);
  add("scalar", DType::kFloat32, Shape(), {{"value", 2.0f}}, 2.0);
  add("empty", DType::kFloat32, {0, 3}, {{"value", 2.0f}}, 2.0);
  add("text_goes_before_value", DType::kFloat64, {2},
      {{"value", 1.0f}, {"str_value", std::string("0.1")}}, 0.1);
  add("text_int64", DType::kInt64, {2}, {{"str_value", std::string("4503599627370497")}},
      4503599627370497.0);
  add("int32", DType::kInt32, {2}, {{"value", -7.0f}}, -7.0);
  add("bool", DType::kBool, {2}, {{"value", 1.0f}}, 1.0);
  add("uint8", DType::kUint8, {2}, {{"value", 255.0f}}, 255.0);
  // Halfway between two numbers, the even one.
  add("bfloat16", DType::kBFloat16, {2, 3}, {{"value", 257.0f}}, 256.0);
  add("float16", DType::kFloat16, {17}, {{"value", -2051.0f}}, -2052.0);
  add("float16_that_is_too_large", DType::kFloat16, {2}, {{"value", 1e6f}},
      std::numeric_limits<double>::infinity());
  add("text_bfloat16", DType::kBFloat16, {2}, {{"str_value", std::string("259")}}, 260.0);
  add("value_tensor", DType::kFloat32, {2, 2}, {{"value", 1.0f}}, 0.25);
  cases.back().inputs = {{"ValueTensor", {Values({1}, {0.25})}}};
  const auto add_tensor = [&](const std::string& name, DType dtype, double value, DType given,
                              double expected) {
    add(name, dtype, {2, 3}, {}, expected);
    cases.back().inputs = {{"ValueTensor", {Values({1}, {value}, given)}}};
  };
  add_tensor("int32_of_int64", DType::kInt32, -70000, DType::kInt64, -70000);
  add_tensor("int64_of_int32", DType::kInt64, -7, DType::kInt32, -7);
  add_tensor("uint8_of_float64", DType::kUint8, 255.5, DType::kFloat64, 255);
  add_tensor("int8_of_float32", DType::kInt8, -128.5, DType::kFloat32, -128);
  add_tensor("int16_of_int8", DType::kInt16, -5, DType::kInt8, -5);
  add_tensor("float64_of_int16", DType::kFloat64, -300, DType::kInt16, -300);
  add_tensor("float32_of_uint8", DType::kFloat32, 200, DType::kUint8, 200);
  add_tensor("bool_of_float32", DType::kBool, 0.5, DType::kFloat32, 1);
  add_tensor("float32_of_bool", DType::kFloat32, 1, DType::kBool, 1);
  add_tensor("bfloat16_of_float32", DType::kBFloat16, 257, DType::kFloat32, 256);
  add_tensor("float16_of_int64", DType::kFloat16, 2049, DType::kInt64, 2048);
  add_tensor("float32_of_bfloat16", DType::kFloat32, -0.75, DType::kBFloat16, -0.75);
  add_tensor("int32_of_float16", DType::kInt32, -7.5, DType::kFloat16, -7);
  add("many_elements", DType::kFloat32, {300, 301}, {{"value", 3.0f}}, 3.0);
  // Fluid's attributes may carry the shape as ints as well.
  cases.back().attrs["shape"] = std::vector<int32_t>{300, 301};
}

}  // namespace skiff::harness
