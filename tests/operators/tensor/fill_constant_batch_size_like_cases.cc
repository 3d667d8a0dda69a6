#include "tests/operators/tensor/fill_case.h"

namespace skiff::harness {

void AddFillConstantBatchSizeLikeCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Shape& input, AttributeMap attrs,
                       const Array& out) {
    cases.push_back(FillCase("fill_constant_batch_size_like", name, std::move(attrs), out));
    cases.back().inputs = {{"Input", {Uniform(input, 1)}}};
  };
  using Ints = std::vector<int32_t>;
  add("rows", {3, 5}, {{"shape", Ints{-1, 2}}, {"value", 1.5f}},
      Values({3, 2}, std::vector<double>(6, 1.5), DType::kFloat32));
  add("other_axes", {3, 5},
      {{"shape", Ints{2, -1}}, {"input_dim_idx", 1}, {"output_dim_idx", 1}, {"value", 4.0f}},
      Values({2, 5}, std::vector<double>(10, 4.0), DType::kInt64));
  add("replaces_a_given_dim", {3, 5}, {{"shape", Ints{7, 2}}, {"str_value", std::string("0.1")}},
      Values({3, 2}, std::vector<double>(6, 0.1), DType::kFloat64));
  add("bfloat16", {3, 5}, {{"shape", Ints{-1, 2}}, {"value", 257.0f}},
      Values({3, 2}, std::vector<double>(6, 256.0), DType::kBFloat16));
  add("empty", {0, 5}, {{"shape", Ints{-1, 2}}}, Values({0, 2}, {}, DType::kFloat32));
}

}  // namespace skiff::harness
