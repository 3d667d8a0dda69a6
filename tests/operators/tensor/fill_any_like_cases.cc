#include "tests/harness/op_case.h"

namespace skiff::harness {

void AddFillAnyLikeCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, const AttributeMap& attrs,
                       double value, DType dtype) {
    cases.push_back({.name = name,
                     .type = "fill_any_like",
                     .inputs = {{"X", {x}}},
                     .attrs = attrs,
                     .reference =
                         [=](const Arrays& inputs) {
                           const Array& like = inputs.at("X")[0];
                           std::vector<double> values(like.values.size(), value);
                           Array out = dtype == DType::kFloat64
                                           ? Values(like.shape, std::move(values))
                                           : Values(like.shape, std::move(values), dtype);
                           out.lod = like.lod;
                           return Arrays{{"Out", {out}}};
                         },
                     .outputs = {{"Out", 1}}});
  };
  // DType::kFloat64 stands for that of the run.
  add("zeros", Uniform({2, 17, 3}, 1), {}, 0, DType::kFloat64);
  add("value", Uniform({3, 2}, 2), {{"value", -1.5f}}, -1.5, DType::kFloat64);
  add("scalar", Uniform({}, 3), {{"value", 2.0f}}, 2, DType::kFloat64);
  add("empty", Uniform({0, 3}, 4), {}, 0, DType::kFloat64);
  add("integers", Integers({5}, 5, -9, 9), {{"value", 3.0f}}, 3, DType::kInt64);
  add("other_dtype", Uniform({3, 2}, 6),
      {{"value", 7.0f}, {"dtype", static_cast<int32_t>(DType::kInt32)}}, 7, DType::kInt32);
  add("bfloat16", Values({2, 3}, {1, 2, 3, 4, 5, 6}, DType::kBFloat16), {{"value", 257.0f}}, 256,
      DType::kBFloat16);
  add("float16_of_another_dtype", Uniform({3, 2}, 8),
      {{"value", -2049.0f}, {"dtype", static_cast<int32_t>(DType::kFloat16)}}, -2048,
      DType::kFloat16);
  add("float32_of_float16", Values({3}, {1, 2, 3}, DType::kFloat16),
      {{"value", 0.5f}, {"dtype", static_cast<int32_t>(DType::kFloat32)}}, 0.5, DType::kFloat32);
  add("ragged", Ragged(Uniform({4, 2}, 7), {1, 0, 3}), {{"value", 1.0f}}, 1, DType::kFloat64);
}

}  // namespace skiff::harness
