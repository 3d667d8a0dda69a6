#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

void AddEyeCases(CaseList& cases) {
  const auto add = [&](const std::string& name, int64_t rows, int64_t columns, DType dtype) {
    OpCase made{.name = name,
                .type = "eye",
                .attrs = {{"num_rows", rows},
                          {"num_columns", columns},
                          {"dtype", static_cast<int32_t>(dtype)}},
                .outputs = {{"Out", 1}},
                .dtypes = {DType::kFloat32}};
    made.reference = [rows, columns, dtype](const Arrays&) {
      Array out =
          Generated({rows, columns < 0 ? rows : columns},
                    [](const std::vector<int64_t>& at) { return at[0] == at[1] ? 1. : 0.; });
      out.fixed_dtype = true;
      out.dtype = dtype;
      return Arrays{{"Out", {out}}};
    };
    cases.push_back(std::move(made));
  };
  add("square", 5, -1, DType::kFloat32);
  add("wide", 3, 7, DType::kFloat64);
  add("tall", 7, 3, DType::kInt64);
  add("int32", 4, 4, DType::kInt32);
  add("bool", 4, 4, DType::kBool);
  add("float16", 5, 4, DType::kFloat16);
  add("bfloat16", 3, 5, DType::kBFloat16);
  add("no_rows", 0, -1, DType::kFloat32);
  add("no_columns", 3, 0, DType::kFloat32);
}

}  // namespace skiff::harness
