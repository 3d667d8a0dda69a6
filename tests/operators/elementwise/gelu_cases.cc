#include <cmath>
#include <utility>

#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {
namespace {

double Exact(double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }

double Approximate(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

}  // namespace

void AddGeluCases(CaseList& cases) {
  AddUnaryCases("gelu", Exact, -5, 5, {}, {}, cases);
  CaseList approximate;
  AddUnaryCases("gelu", Approximate, -5, 5, {}, {{"approximate", true}}, approximate);
  for (OpCase& one : approximate) {
    one.name = "approximate_" + one.name;
    cases.push_back(std::move(one));
  }
  AddLimitCases("", "gelu", {}, {0, INFINITY}, {0, 1}, cases);
  AddLimitCases("approximate_", "gelu", {{"approximate", true}}, {0, INFINITY}, {0, 1}, cases);
}

}  // namespace skiff::harness
