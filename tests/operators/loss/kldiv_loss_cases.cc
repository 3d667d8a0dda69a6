#include <cmath>
#include <string>
#include <utility>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays KldivLossReference(const Arrays& inputs, const std::string& reduction) {
  const Array& x = inputs.at("X")[0];
  const Array& target = inputs.at("Target")[0];
  Array loss = x;
  double sum = 0;
  for (size_t i = 0; i < x.values.size(); ++i) {
    const double t = target.values[i];
    loss.values[i] = t > 0 ? t * (std::log(t) - x.values[i]) : 0;
    sum += loss.values[i];
  }
  if (reduction == "none") return {{"Loss", {loss}}};
  if (reduction == "mean") sum /= static_cast<double>(x.values.size());
  if (reduction == "batchmean") sum /= static_cast<double>(x.shape[0]);
  return {{"Loss", {Values(Shape(), {sum})}}};
}

// Targets, some of which are 0 or negative.
Array Targets(const Shape& shape) {
  Array target = Uniform(shape, 2, -0.2, 1);
  for (size_t i = 0; i < target.values.size(); i += 5) target.values[i] = 0;
  return target;
}

OpCase KldivLossCase(const std::string& name, const Shape& shape, const std::string& reduction) {
  OpCase result{
      .name = name,
      .type = "kldiv_loss",
      .inputs = {{"X", {Uniform(shape, 1, -4, 0)}}, {"Target", {Targets(shape)}}},
      .attrs = {{"reduction", reduction}},
      .reference =
          [reduction](const Arrays& inputs) { return KldivLossReference(inputs, reduction); },
      .outputs = {{"Loss", 1}},
      .gradients = {"X"},
      .accepted_wrong_inputs = {{"Loss@GRAD", "other rank", "a sum of one element has any rank"}}};
  return result;
}

}  // namespace

void AddKldivLossCases(CaseList& cases) {
  for (const std::string reduction : {"none", "mean", "sum", "batchmean"}) {
    cases.push_back(KldivLossCase(reduction, {6, 5}, reduction));
    cases.push_back(KldivLossCase(reduction + "_rank_1", {7}, reduction));
    cases.push_back(KldivLossCase(reduction + "_rank_4", {2, 3, 5, 4}, reduction));
    OpCase threads = KldivLossCase(reduction + "_on_several_threads", {301, 257}, reduction);
    threads.gradients.clear();
    cases.push_back(std::move(threads));
  }
  for (const std::string reduction : {"none", "mean", "sum"}) {
    cases.push_back(KldivLossCase(reduction + "_rank_0", Shape(), reduction));
  }
  for (const std::string reduction : {"none", "sum"}) {
    cases.push_back(KldivLossCase(reduction + "_of_no_elements", {0, 5}, reduction));
  }
  // Float32 has the mean of these losses, but not their sum.
  OpCase huge = KldivLossCase("mean_of_huge_losses", {8, 16}, "mean");
  huge.inputs = {{"X", {Uniform({8, 16}, 1, -2e37, -1e37)}},
                 {"Target", {Uniform({8, 16}, 2, 0.5, 1)}}};
  huge.gradients.clear();
  cases.push_back(std::move(huge));
  OpCase mean = KldivLossCase("no_reduction_given", {6, 5}, "mean");
  mean.attrs.clear();
  cases.push_back(std::move(mean));
}

}  // namespace skiff::harness
