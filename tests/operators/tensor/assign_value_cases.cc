#include <limits>

#include "tests/harness/op_case.h"

namespace skiff::harness {

void AddAssignValueCases(CaseList& cases) {
  const auto add = [&](const std::string& name, DType dtype, const char* attr, Attribute values,
                       std::vector<double> expected) {
    const Array out = Values({2, 2}, std::move(expected), dtype);
    cases.push_back({.name = name,
                     .type = "assign_value",
                     .attrs = {{"shape", std::vector<int32_t>{2, 2}},
                               {"dtype", static_cast<int32_t>(dtype)},
                               {attr, std::move(values)}},
                     .reference =
                         [out](const Arrays&) {
                           return Arrays{{"Out", {out}}};
                         },
                     .outputs = {{"Out", 1}},
                     .dtypes = {DType::kFloat32}});
  };
  add("float32", DType::kFloat32, "fp32_values", std::vector<float>{1, 2.5f, -3, 0},
      {1, 2.5, -3, 0});
  // Halfway between two numbers, the even one.
  add("float16", DType::kFloat16, "fp32_values", std::vector<float>{1, 2049, -3, 65520},
      {1, 2048, -3, std::numeric_limits<double>::infinity()});
  add("bfloat16", DType::kBFloat16, "fp32_values", std::vector<float>{1, 257, -259, 0},
      {1, 256, -260, 0});
  add("float64", DType::kFloat64, "fp64_values", std::vector<double>{1, 2.1, -3, 0},
      {1, 2.1, -3, 0});
  add("int32", DType::kInt32, "int32_values", std::vector<int32_t>{1, 2, -3, 0}, {1, 2, -3, 0});
  add("int64", DType::kInt64, "int64_values", std::vector<int64_t>{1, int64_t{1} << 40, -3, 0},
      {1, 0x1.0p40, -3, 0});
  add("bool", DType::kBool, "bool_values", std::vector<int32_t>{1, 0, 0, 1}, {1, 0, 0, 1});
}

}  // namespace skiff::harness
