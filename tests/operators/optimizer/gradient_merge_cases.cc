#include <utility>

#include "framework/base/error.h"
#include "tests/harness/op_case.h"
#include "tests/operators/optimizer/gradient_merge_step.h"

namespace skiff::harness {
namespace {

OpCase MergeGradients(const std::string& name, const std::vector<Shape>& shapes,
                      const GradientMergeStep& step) {
  OpCase made{.name = name + "_" + step.name, .type = "gradient_merge"};
  uint64_t seed = 1;
  for (const Shape& shape : shapes) {
    made.inputs["Accumulated"].push_back(Uniform(shape, seed++));
    made.inputs["Grad"].push_back(Uniform(shape, seed++));
  }
  made.inputs["Count"] = {Values({1}, {static_cast<double>(step.count)}, DType::kInt64)};
  made.attrs = {{"steps", step.steps}, {"mean", step.mean}};
  made.outputs = {{"AccumulatedOut", static_cast<int>(shapes.size())}};
  made.reference = [step](const Arrays& inputs) {
    Arrays outputs;
    const bool divides = step.mean && step.count >= step.steps;
    for (size_t i = 0; i < inputs.at("Accumulated").size(); ++i) {
      Array sum = inputs.at("Accumulated")[i];
      const Array& grad = inputs.at("Grad")[i];
      for (size_t j = 0; j < sum.values.size(); ++j) {
        sum.values[j] = step.count == 1 ? grad.values[j] : sum.values[j] + grad.values[j];
        if (divides) sum.values[j] /= static_cast<double>(step.count);
      }
      outputs["AccumulatedOut"].push_back(std::move(sum));
    }
    return outputs;
  };
  return made;
}

}  // namespace

void AddGradientMergeCases(CaseList& cases) {
  for (const GradientMergeStep& step :
       {GradientMergeStep{.name = "first"}, GradientMergeStep{.name = "middle", .count = 2},
        GradientMergeStep{.name = "mean", .count = 4},
        GradientMergeStep{.name = "sum", .count = 4, .mean = false},
        GradientMergeStep{.name = "only", .steps = 1},
        // In a round that has become shorter.
        GradientMergeStep{.name = "late", .count = 6}}) {
    cases.push_back(MergeGradients("one", {{5, 7}}, step));
    cases.push_back(MergeGradients("list", {{5, 7}, {0}, Shape(), {131, 257}, {17}}, step));
    for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
      OpCase halves = MergeGradients(StrCat(half), {{5, 7}, {0}, {131, 67}, {17}}, step);
      for (Array& grad : halves.inputs["Grad"]) grad = Values(grad.shape, grad.values, half);
      halves.dtypes = {DType::kFloat32};
      cases.push_back(std::move(halves));
    }
  }
}

}  // namespace skiff::harness
