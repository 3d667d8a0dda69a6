#include <string>
#include <utility>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays NllLossReference(const Arrays& inputs, const std::string& reduction, int64_t ignored) {
  const Array& x = inputs.at("X")[0];
  const Array& label = inputs.at("Label")[0];
  const int64_t classes = x.shape[1];
  const int64_t places = x.shape.element_count(2, x.shape.rank());
  std::vector<double> losses;
  double sum = 0, total = 0;
  for (size_t i = 0; i < label.values.size(); ++i) {
    const auto of_item = static_cast<int64_t>(label.values[i]);
    const auto item = static_cast<int64_t>(i);
    losses.push_back(0);
    if (of_item == ignored) continue;
    const int64_t at = (item / places * classes + of_item) * places + item % places;
    const double weight =
        inputs.contains("Weight") ? inputs.at("Weight")[0].values[static_cast<size_t>(of_item)] : 1;
    losses.back() = -weight * x.values[static_cast<size_t>(at)];
    sum += losses.back();
    total += weight;
  }
  if (reduction == "none") {
    return {{"Out", {Values(label.shape, losses)}}, {"Total_weight", {Values(Shape(), {0})}}};
  }
  if (reduction == "mean" && total != 0) sum /= total;
  return {{"Out", {Values(Shape(), {sum})}}, {"Total_weight", {Values(Shape(), {total})}}};
}

OpCase NllLossCase(const std::string& name, const Shape& shape, const Array& label,
                   const std::string& reduction, int64_t ignored = -100) {
  return {
      .name = name,
      .type = "nll_loss",
      .inputs = {{"X", {Uniform(shape, 1, -4, 0)}}, {"Label", {label}}},
      .attrs = {{"reduction", reduction}, {"ignore_index", ignored}},
      .reference =
          [=](const Arrays& inputs) { return NllLossReference(inputs, reduction, ignored); },
      .outputs = {{"Out", 1}, {"Total_weight", 1}},
      .gradients = {"X"},
      .loss_outputs = {"Out"},
      .accepted_wrong_inputs = {{"Out@GRAD", "other rank", "a sum of one element has any rank"}}};
}

}  // namespace

void AddNllLossCases(CaseList& cases) {
  for (const std::string reduction : {"none", "sum", "mean"}) {
    const auto add = [&](const std::string& name, const Shape& shape, const Array& label,
                         int64_t ignored = -100) {
      cases.push_back(NllLossCase(reduction + "_" + name, shape, label, reduction, ignored));
    };
    add("rows", {6, 5}, Integers({6}, 2, 0, 5));
    add("int32", {6, 5}, Integers({6}, 3, 0, 5, DType::kInt32));
    add("images", {2, 3, 4, 5}, Integers({2, 4, 5}, 5, 0, 3));
    add("sequences", {2, 3, 7}, Integers({2, 7}, 6, 0, 3));
    add("ignored", {9, 3}, Integers({9}, 7, 0, 3), 1);
    add("one_class", {4, 1}, Integers({4}, 8, 0, 1));
    add("weighted", {9, 3}, Integers({9}, 9, 0, 3), 2);
    cases.back().inputs["Weight"] = {Uniform({3}, 10, 0.5, 2)};
    add("weighted_images", {2, 3, 4, 5}, Integers({2, 4, 5}, 11, 0, 3));
    cases.back().inputs["Weight"] = {Uniform({3}, 12, 0.5, 2)};
    add("all_ignored", {3, 4}, Values({3}, {2, 2, 2}, DType::kInt64), 2);
    add("weightless", {3, 4}, Values({3}, {1, 1, 1}, DType::kInt64));
    cases.back().inputs["Weight"] = {Values({4}, {1, 0, 1, 1})};
    add("on_several_threads", {30011, 3}, Integers({30011}, 13, 0, 3));
    cases.back().gradients.clear();
    add("no_items", {0, 5}, Integers({0}, 14, 0, 5));
  }
  OpCase large = NllLossCase("4M_elements", {4096, 1024}, Integers({4096}, 15, 0, 1024), "mean");
  large.benchmark_only = true;
  cases.push_back(std::move(large));
}

}  // namespace skiff::harness
