#include <algorithm>

#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

Arrays SequenceMaskReference(const Arrays& inputs, int64_t maxlen, DType dtype) {
  const Array& x = inputs.at("X")[0];
  int64_t length = maxlen;
  if (inputs.contains("MaxLenTensor")) {
    length = static_cast<int64_t>(inputs.at("MaxLenTensor")[0].values[0]);
  } else if (maxlen < 0) {
    length = 0;
    // As in Fluid, 1.5 makes a length of 1.
    for (const double value : x.values) length = std::max(length, static_cast<int64_t>(value));
  }
  std::vector<double> mask;
  for (const double value : x.values) {
    for (int64_t j = 0; j < length; ++j) mask.push_back(static_cast<double>(j) < value ? 1 : 0);
  }
  Shape shape = x.shape;
  shape.Append(length);
  return {{"Y", {Values(shape, mask, dtype)}}};
}

OpCase SequenceMaskCase(const std::string& name, Array x, int32_t maxlen, DType dtype) {
  return {.name = name,
          .type = "sequence_mask",
          .inputs = {{"X", {std::move(x)}}},
          .attrs = {{"maxlen", maxlen}, {"out_dtype", static_cast<int32_t>(dtype)}},
          .reference =
              [=](const Arrays& inputs) { return SequenceMaskReference(inputs, maxlen, dtype); },
          .outputs = {{"Y", 1}}};
}

}  // namespace

void AddSequenceMaskCases(CaseList& cases) {
  const Array lengths = Values({4}, {3, 0, 7, 1}, DType::kInt64);
  for (const auto& [name, dtype] :
       {std::pair{"bool", DType::kBool}, std::pair{"uint8", DType::kUint8},
        std::pair{"int32", DType::kInt32}, std::pair{"int64", DType::kInt64},
        std::pair{"float32", DType::kFloat32}, std::pair{"float64", DType::kFloat64}}) {
    cases.push_back(SequenceMaskCase(std::string("to_") + name, lengths, 5, dtype));
  }
  cases.push_back(SequenceMaskCase("longest_of_x", lengths, -1, DType::kInt64));
  cases.push_back(SequenceMaskCase("all_lengths_are_0", Values({2}, {0, 0}, DType::kInt32), -1,
                                   DType::kFloat32));
  cases.push_back(
      SequenceMaskCase("below_0", Values({2, 1}, {-1, 2}, DType::kInt64), 3, DType::kBool));
  cases.push_back(SequenceMaskCase("lengths_of_int32", Values({2, 2}, {1, 0, 3, 2}, DType::kInt32),
                                   3, DType::kInt32));
  cases.push_back(
      SequenceMaskCase("lengths_between", Values({3}, {1.5, 0.25, 2}), 4, DType::kFloat32));
  cases.push_back(
      SequenceMaskCase("longest_between", Values({3}, {1.5, 0.25, -2}), -1, DType::kFloat32));
  cases.push_back(
      SequenceMaskCase("scalar", Values(Shape(), {2}, DType::kInt64), 4, DType::kFloat32));
  cases.push_back(SequenceMaskCase("nothing", Values({0}, {}, DType::kInt64), 4, DType::kFloat32));
  OpCase from_tensor = SequenceMaskCase("length_in_a_tensor", lengths, 2, DType::kFloat32);
  from_tensor.inputs["MaxLenTensor"] = {Values({1}, {6}, DType::kInt32)};
  cases.push_back(from_tensor);
  cases.push_back(SequenceMaskCase("benchmark", Integers({256}, 1, 0, 128), 128, DType::kFloat32));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
