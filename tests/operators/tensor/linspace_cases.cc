#include "tests/harness/op_case.h"

namespace skiff::harness {

void AddLinspaceCases(CaseList& cases) {
  struct Ends {
    double start;
    double stop;
    DType dtype;
  };
  const auto add = [&](const std::string& name, const Ends& ends, const Array& count,
                       std::vector<double> expected, DType dtype) {
    const Array out = Values({static_cast<int64_t>(expected.size())}, expected, dtype);
    cases.push_back({.name = name,
                     .type = "linspace",
                     .inputs = {{"Start", {Values({1}, {ends.start}, ends.dtype)}},
                                {"Stop", {Values({1}, {ends.stop}, ends.dtype)}},
                                {"Num", {count}}},
                     .attrs = {{"dtype", static_cast<int32_t>(dtype)}},
                     .reference =
                         [out](const Arrays&) {
                           return Arrays{{"Out", {out}}};
                         },
                     .outputs = {{"Out", 1}},
                     .dtypes = {DType::kFloat32}});
  };
  const auto count = [](double n) { return Values({1}, {n}, DType::kInt32); };
  add("float32", {0, 1, DType::kFloat32}, count(5), {0, 0.25, 0.5, 0.75, 1}, DType::kFloat32);
  add("down", {5, 1, DType::kFloat32}, count(4), {5, 11.0 / 3, 7.0 / 3, 1}, DType::kFloat32);
  add("float64", {-1, 1, DType::kFloat64}, count(4), {-1, -1.0 / 3, 1.0 / 3, 1}, DType::kFloat64);
  add("one", {3, 10, DType::kFloat32}, count(1), {3}, DType::kFloat32);
  add("int64_cuts_towards_0", {-10, 10, DType::kInt64}, count(4), {-10, -3, 3, 10}, DType::kInt64);
  add("int32_of_floats", {0, 10, DType::kFloat32}, count(4), {0, 3, 6, 10}, DType::kInt32);
  add("count_of_int64", {1, 2, DType::kFloat32}, Values(Shape(), {3}, DType::kInt64), {1, 1.5, 2},
      DType::kFloat32);
  add("floats_of_int64", {0, 7, DType::kInt64}, count(4), {0, 7.0 / 3, 14.0 / 3, 7},
      DType::kFloat32);
  std::vector<double> many;
  for (int i = 0; i < 40001; ++i) many.push_back(i / 40000.0);
  add("many", {0, 1, DType::kFloat64}, count(40001), many, DType::kFloat64);
}

}  // namespace skiff::harness
