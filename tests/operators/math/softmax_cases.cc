#include <algorithm>
#include <cmath>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays SoftmaxReference(const Arrays& inputs, int axis) {
  Array out = inputs.at("X")[0];
  if (out.shape.rank() == 0) return {{"Out", {Values({}, {1.0})}}};
  axis = axis < 0 ? axis + out.shape.rank() : axis;
  const int64_t classes = out.shape[axis];
  const int64_t outer = out.shape.element_count(0, axis);
  const int64_t inner = out.shape.element_count(axis + 1, out.shape.rank());
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      double* item = out.values.data() + o * classes * inner + i;
      double max = -INFINITY;
      for (int64_t c = 0; c < classes; ++c) max = std::max(max, item[c * inner]);
      double sum = 0;
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(item[c * inner] - max);
      for (int64_t c = 0; c < classes; ++c) {
        item[c * inner] = std::exp(item[c * inner] - max) / sum;
      }
    }
  }
  return {{"Out", {out}}};
}

OpCase SoftmaxCase(const std::string& name, const Shape& shape, int32_t axis = -1,
                   double range = 3) {
  OpCase result{
      .name = name,
      .type = "softmax",
      .inputs = {{"X", {Uniform(shape, 13, -range, range)}}},
      .attrs = {{"axis", axis}},
      .reference = [axis](const Arrays& inputs) { return SoftmaxReference(inputs, axis); },
      .outputs = {{"Out", 1}}};
  if (shape.element_count() < 1000) result.gradients = {"X"};
  return result;
}

}  // namespace

void AddSoftmaxCases(CaseList& cases) {
  cases.push_back(SoftmaxCase("rows_of_10", {4, 10}));
  cases.push_back(SoftmaxCase("rows_of_16", {3, 16}));
  cases.push_back(SoftmaxCase("rows_of_17", {3, 17}));
  cases.push_back(SoftmaxCase("rows_of_45", {2, 45}));
  cases.push_back(SoftmaxCase("rows_of_1028", {2, 1028}));
  cases.push_back(SoftmaxCase("one_class", {5, 1}));
  cases.push_back(SoftmaxCase("vector", {7}));
  cases.push_back(SoftmaxCase("scalar", {}));
  cases.push_back(SoftmaxCase("scalar_of_axis_0", {}, 0));
  cases.push_back(SoftmaxCase("rank_4", {2, 3, 4, 5}));
  cases.push_back(SoftmaxCase("first_axis", {5, 3}, 0));
  cases.push_back(SoftmaxCase("middle_axis", {2, 4, 17}, 1));
  cases.push_back(SoftmaxCase("channels", {2, 3, 4, 5}, -3));
  // float32 logits of 200 have a rounding error of 8e-6, which exp turns into a relative one.
  OpCase extreme = SoftmaxCase("large_logits", {4, 9}, -1, 200);
  extreme.gradients.clear();
  extreme.float32_tolerance = 5e-5;
  cases.push_back(extreme);
  cases.push_back(SoftmaxCase("several_tiles", {200, 333}));
  cases.push_back(SoftmaxCase("long_rows", {3, 20001}));
  cases.push_back(SoftmaxCase("several_column_tiles", {3, 50, 130}, 1));
  cases.push_back(SoftmaxCase("no_rows", {0, 4}));
  cases.push_back(SoftmaxCase("no_classes", {3, 0}));
  OpCase attention = SoftmaxCase("attention_12288x128", {12288, 128});
  attention.benchmark_only = true;
  cases.push_back(attention);
}

}  // namespace skiff::harness
