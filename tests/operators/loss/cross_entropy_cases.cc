#include <cmath>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays CrossEntropyReference(const Arrays& inputs, bool soft, int64_t ignored) {
  const Array& x = inputs.at("X")[0];
  const Array& label = inputs.at("Label")[0];
  const auto classes = static_cast<size_t>(x.shape.dim(-1));
  // Labels without the last dim make losses without it.
  Shape shape(x.shape.dims().first(static_cast<size_t>(x.shape.rank() - 1)));
  if (label.shape.rank() == x.shape.rank()) shape.Append(1);
  std::vector<double> losses;
  for (size_t row = 0; row < static_cast<size_t>(shape.element_count()); ++row) {
    double loss = 0;
    for (size_t c = 0; c < classes; ++c) {
      const auto hard = soft ? 0 : static_cast<int64_t>(label.values[row]);
      const bool is_label = hard != ignored && hard == static_cast<int64_t>(c);
      const double weight = soft ? label.values[row * classes + c] : (is_label ? 1.0 : 0.0);
      loss -= weight * std::log(x.values[row * classes + c]);
    }
    losses.push_back(loss);
  }
  return {{"Y", {Values(shape, losses)}}};
}

OpCase CrossEntropyCase(const std::string& name, const Shape& shape, const Array& label,
                        bool soft = false, int32_t ignored = -100) {
  OpCase result{
      .name = name,
      .type = "cross_entropy",
      .inputs = {{"X", {Uniform(shape, 20, 0.1, 1.0)}}, {"Label", {label}}},
      .attrs = {{"soft_label", soft}, {"ignore_index", ignored}},
      .reference =
          [=](const Arrays& inputs) { return CrossEntropyReference(inputs, soft, ignored); },
      .outputs = {{"Y", 1}},
      .gradients = {"X"}};
  return result;
}

}  // namespace

void AddCrossEntropyCases(CaseList& cases) {
  cases.push_back(CrossEntropyCase("hard", {6, 5}, Integers({6, 1}, 21, 0, 5)));
  cases.push_back(
      CrossEntropyCase("hard_int32", {6, 5}, Integers({6, 1}, 21, 0, 5, DType::kInt32)));
  cases.push_back(CrossEntropyCase("hard_rank_3", {2, 3, 17}, Integers({2, 3, 1}, 22, 0, 17)));
  cases.push_back(CrossEntropyCase("hard_vector_label", {6, 5}, Integers({6}, 23, 0, 5)));
  cases.push_back(CrossEntropyCase("ignored_class", {9, 3}, Integers({9, 1}, 24, 0, 3), false, 1));
  cases.push_back(CrossEntropyCase("ignored_label", {4, 3},
                                   Values({4, 1}, {0, -1, 2, -1}, DType::kInt64), false, -1));
  cases.push_back(CrossEntropyCase("soft", {6, 5}, Uniform({6, 5}, 25, 0.0, 1.0), true));
  cases.push_back(
      CrossEntropyCase("soft_rank_3", {2, 3, 4}, Uniform({2, 3, 4}, 26, 0.0, 1.0), true));
  cases.push_back(CrossEntropyCase("no_rows", {0, 5}, Integers({0, 1}, 27, 0, 5)));
  cases.push_back(CrossEntropyCase("soft_no_classes", {3, 0}, Uniform({3, 0}, 28), true));
}

}  // namespace skiff::harness
