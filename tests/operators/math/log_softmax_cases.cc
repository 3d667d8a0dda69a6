#include <algorithm>
#include <cmath>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

Arrays LogSoftmaxReference(const Arrays& inputs, int axis) {
  Array out = inputs.at("X")[0];
  if (out.shape.rank() == 0) return {{"Out", {Values({}, {0.0})}}};
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
        item[c * inner] = item[c * inner] - max - std::log(sum);
      }
    }
  }
  return {{"Out", {out}}};
}

OpCase LogSoftmaxCase(const std::string& name, const Shape& shape, int32_t axis = -1,
                      double range = 3) {
  OpCase result{
      .name = name,
      .type = "log_softmax",
      .inputs = {{"X", {Uniform(shape, 13, -range, range)}}},
      .attrs = {{"axis", axis}},
      .reference = [axis](const Arrays& inputs) { return LogSoftmaxReference(inputs, axis); },
      .outputs = {{"Out", 1}}};
  if (shape.element_count() < 1000) result.gradients = {"X"};
  return result;
}

}  // namespace

void AddLogSoftmaxCases(CaseList& cases) {
  cases.push_back(LogSoftmaxCase("rows_of_10", {4, 10}));
  cases.push_back(LogSoftmaxCase("rows_of_16", {3, 16}));
  cases.push_back(LogSoftmaxCase("rows_of_17", {3, 17}));
  cases.push_back(LogSoftmaxCase("one_class", {5, 1}));
  cases.push_back(LogSoftmaxCase("vector", {7}));
  cases.push_back(LogSoftmaxCase("scalar", {}));
  cases.push_back(LogSoftmaxCase("rank_4", {2, 3, 4, 5}));
  cases.push_back(LogSoftmaxCase("first_axis", {5, 3}, 0));
  cases.push_back(LogSoftmaxCase("middle_axis", {2, 4, 17}, 1));
  cases.push_back(LogSoftmaxCase("channels", {2, 3, 4, 5}, -3));
  OpCase extreme = LogSoftmaxCase("large_logits", {4, 9}, -1, 200);
  cases.push_back(extreme);
  cases.push_back(LogSoftmaxCase("several_tiles", {200, 333}));
  cases.push_back(LogSoftmaxCase("long_rows", {3, 20001}));
  cases.push_back(LogSoftmaxCase("several_column_tiles", {3, 50, 130}, 1));
  cases.push_back(LogSoftmaxCase("no_rows", {0, 4}));
  cases.push_back(LogSoftmaxCase("no_classes", {3, 0}));
  OpCase vocabulary = LogSoftmaxCase("vocabulary_512x30522", {512, 30522});
  vocabulary.benchmark_only = true;
  cases.push_back(vocabulary);
}

}  // namespace skiff::harness
