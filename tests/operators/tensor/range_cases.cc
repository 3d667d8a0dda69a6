#include "tests/harness/op_case.h"

namespace skiff::harness {

void AddRangeCases(CaseList& cases) {
  const auto add = [&](const std::string& name, std::vector<double> start_end_step,
                       std::vector<double> expected, DType dtype) {
    const auto number = [&](size_t i) { return Values({1}, {start_end_step[i]}, dtype); };
    const Array out = Values({static_cast<int64_t>(expected.size())}, expected, dtype);
    cases.push_back(
        {.name = name,
         .type = "range",
         .inputs = {{"Start", {number(0)}}, {"End", {number(1)}}, {"Step", {number(2)}}},
         .reference =
             [out](const Arrays&) {
               return Arrays{{"Out", {out}}};
             },
         .outputs = {{"Out", 1}},
         .dtypes = {DType::kFloat32}});
  };
  add("float32", {0, 1, 0.3f}, {0, 0.3f, 0.6f, 0.9f}, DType::kFloat32);
  add("float32_down", {5, 1, -1.5}, {5, 3.5, 2}, DType::kFloat32);
  add("float64_does_not_reach_the_end", {0, 0.75, 0.25}, {0, 0.25, 0.5}, DType::kFloat64);
  // Computed in float32, then rounded: halfway to the even number.
  add("bfloat16", {256, 260, 1}, {256, 256, 258, 260}, DType::kBFloat16);
  add("float16_down", {1, 0, -0.375}, {1, 0.625, 0.25}, DType::kFloat16);
  add("int64", {0, 7, 2}, {0, 2, 4, 6}, DType::kInt64);
  add("int64_ends_before", {0, 8, 2}, {0, 2, 4, 6}, DType::kInt64);
  add("int32_down", {7, 0, -3}, {7, 4, 1}, DType::kInt32);
  add("int32_across_all_numbers", {-2147483648.0, 2147483647.0, 2147483647.0},
      {-2147483648.0, -1, 2147483646.0}, DType::kInt32);
  add("nothing", {3, 3, 1}, {}, DType::kFloat32);
  std::vector<double> many;
  for (int i = 0; i < 40001; ++i) many.push_back(3 * i - 60000);
  add("many", {-60000, 60003, 3}, many, DType::kInt64);
}

}  // namespace skiff::harness
