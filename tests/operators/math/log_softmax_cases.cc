#include <cmath>

#include "tests/operators/math/softmax_reference.h"

namespace skiff::harness {
namespace {

OpCase LogSoftmaxCase(const std::string& name, const Shape& shape, int32_t axis = -1,
                      double range = 3) {
  const auto formula = [](double x, double sum) { return x - std::log(sum); };
  return SoftmaxCaseOf("log_softmax", formula, name, shape, axis, range);
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
