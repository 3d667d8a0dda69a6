#include <cmath>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays CrossEntropy2Reference(const Arrays& inputs, int64_t ignored) {
  const Array& x = inputs.at("X")[0];
  const Array& label = inputs.at("Label")[0];
  const auto classes = static_cast<size_t>(x.shape.dim(-1));
  // Labels without the last dim make losses without it.
  Shape shape(x.shape.dims().first(static_cast<size_t>(x.shape.rank() - 1)));
  if (label.shape.rank() == x.shape.rank()) shape.Append(1);
  std::vector<double> losses, matches;
  for (size_t row = 0; row < static_cast<size_t>(shape.element_count()); ++row) {
    const auto hard = static_cast<int64_t>(label.values[row]);
    const bool counts = hard != ignored;
    matches.push_back(counts ? x.values[row * classes + static_cast<size_t>(hard)] : 0);
    losses.push_back(counts ? -std::log(matches.back()) : 0);
  }
  // MatchX has the rank of X in any case.
  Shape match_shape = x.shape;
  match_shape[x.shape.rank() - 1] = 1;
  return {{"Y", {Values(shape, losses)}}, {"MatchX", {Values(match_shape, matches)}}};
}

OpCase CrossEntropy2Case(const std::string& name, const Shape& shape, const Array& label,
                         int32_t ignored = -100) {
  return {
      .name = name,
      .type = "cross_entropy2",
      .inputs = {{"X", {Uniform(shape, 20, 0.1, 1.0)}}, {"Label", {label}}},
      .attrs = {{"ignore_index", ignored}},
      .reference = [=](const Arrays& inputs) { return CrossEntropy2Reference(inputs, ignored); },
      .outputs = {{"Y", 1}, {"MatchX", 1}, {"XShape", 1}},
      .gradients = {"X"}};
}

}  // namespace

void AddCrossEntropy2Cases(CaseList& cases) {
  cases.push_back(CrossEntropy2Case("columns", {6, 5}, Integers({6, 1}, 21, 0, 5)));
  cases.push_back(CrossEntropy2Case("int32", {6, 5}, Integers({6, 1}, 21, 0, 5, DType::kInt32)));
  cases.push_back(CrossEntropy2Case("rank_3", {2, 3, 17}, Integers({2, 3, 1}, 22, 0, 17)));
  cases.push_back(CrossEntropy2Case("vector_label", {6, 5}, Integers({6}, 23, 0, 5)));
  cases.push_back(CrossEntropy2Case("ignored_class", {9, 3}, Integers({9, 1}, 24, 0, 3), 1));
  cases.push_back(CrossEntropy2Case("ignored_label", {4, 3},
                                    Values({4, 1}, {0, -1, 2, -1}, DType::kInt64), -1));
  cases.push_back(CrossEntropy2Case("several_threads", {5000, 3}, Integers({5000, 1}, 25, 0, 3)));
  cases.push_back(CrossEntropy2Case("no_rows", {0, 5}, Integers({0, 1}, 27, 0, 5)));
}

}  // namespace skiff::harness
