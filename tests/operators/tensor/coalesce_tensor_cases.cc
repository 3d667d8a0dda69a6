#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

// `alignment` is in elements.
Arrays CoalesceTensorReference(const Arrays& inputs, int64_t alignment) {
  std::vector<double> fused;
  for (const Array& x : inputs.at("Input")) {
    fused.insert(fused.end(), x.values.begin(), x.values.end());
    while (static_cast<int64_t>(fused.size()) % alignment != 0) fused.push_back(0);
  }
  const auto length = static_cast<int64_t>(fused.size());
  return {{"Output", inputs.at("Input")}, {"FusedOutput", {Values({length}, std::move(fused))}}};
}

}  // namespace

void AddCoalesceTensorCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const std::vector<Array>& inputs, DType dtype,
                       int64_t alignment, AttributeMap attrs) {
    attrs["copy_data"] = true;
    attrs["dtype"] = static_cast<int32_t>(dtype);
    cases.push_back(
        {.name = name,
         .type = "coalesce_tensor",
         .inputs = {{"Input", inputs}},
         .attrs = std::move(attrs),
         .reference =
             [=](const Arrays& arrays) { return CoalesceTensorReference(arrays, alignment); },
         .outputs = {{"Output", static_cast<int>(inputs.size())}, {"FusedOutput", 1}},
         .dtypes = {dtype}});
  };
  const std::vector<Array> weights = {Uniform({3, 2}, 1), Uniform({}, 2), Uniform({5}, 3)};
  add("weights", weights, DType::kFloat32, 1, {{"use_align", false}});
  add("weights_float64", weights, DType::kFloat64, 1, {{"use_align", false}});
  add("one", {Uniform({4}, 1)}, DType::kFloat32, 1, {{"use_align", false}});
  add("empty", {Uniform({2}, 1), Uniform({0, 3}, 2)}, DType::kFloat32, 1, {{"use_align", false}});
  add("aligned", weights, DType::kFloat32, 4, {{"align_size", 16}});
  add("aligned_to_chunks", {Uniform({1025}, 1), Uniform({3}, 2)}, DType::kFloat32, 1024, {});
  cases.back().attrs["persist_output"] = true;
}

}  // namespace skiff::harness
