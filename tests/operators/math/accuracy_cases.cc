#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays AccuracyReference(const Arrays& inputs) {
  const Array& indices = inputs.at("Indices")[0];
  const Array& label = inputs.at("Label")[0];
  const auto rows = static_cast<size_t>(indices.shape[0]);
  const auto k = static_cast<size_t>(indices.shape[1]);
  double correct = 0;
  for (size_t row = 0; row < rows; ++row) {
    bool found = false;
    for (size_t i = 0; i < k; ++i) found |= indices.values[row * k + i] == label.values[row];
    correct += found ? 1 : 0;
  }
  const auto total = static_cast<double>(rows);
  const double accuracy = rows == 0 ? 0.0 : static_cast<float>(correct / total);
  return {{"Accuracy", {Values({}, {accuracy}, DType::kFloat32)}},
          {"Correct", {Values({}, {correct}, DType::kInt32)}},
          {"Total", {Values({}, {total}, DType::kInt32)}}};
}

OpCase AccuracyCase(const std::string& name, int64_t rows, int64_t k, const Shape& label,
                    DType label_dtype = DType::kInt64) {
  OpCase result{.name = name,
                .type = "accuracy",
                .inputs = {{"Out", {Uniform({rows, k}, 17)}},
                           {"Indices", {Integers({rows, k}, 18, 0, 5)}},
                           {"Label", {Integers(label, 19, 0, 5, label_dtype)}}},
                .reference = AccuracyReference,
                .outputs = {{"Accuracy", 1}, {"Correct", 1}, {"Total", 1}}};
  return result;
}

}  // namespace

void AddAccuracyCases(CaseList& cases) {
  cases.push_back(AccuracyCase("top_1", 12, 1, {12, 1}));
  cases.push_back(AccuracyCase("top_3", 13, 3, {13, 1}));
  cases.push_back(AccuracyCase("label_vector", 7, 2, {7}));
  cases.push_back(AccuracyCase("int32_label", 9, 2, {9, 1}, DType::kInt32));
  cases.push_back(AccuracyCase("no_rows", 0, 2, {0, 1}));
  // The op doesn't know the number of classes: a label that isn't a class, such as one that the
  // loss ignores, counts as wrong.
  OpCase outside = AccuracyCase("labels_that_are_no_class", 12, 3, {12, 1});
  outside.inputs["Label"] = {Integers({12, 1}, 20, -100, 100)};
  cases.push_back(outside);
}

}  // namespace skiff::harness
