#include <algorithm>

#include "tests/operators/random/sample_statistics.h"

namespace skiff::harness {

void AddRandpermCases(CaseList& cases) {
  const auto add = [&](const std::string& name, int32_t n, DType dtype) {
    OpCase made{.name = name,
                .type = "randperm",
                .attrs = {{"n", n}, {"dtype", static_cast<int32_t>(dtype)}},
                .outputs = {{"Out", 1}},
                .dtypes = {DType::kFloat32}};
    made.check = [n](const Arrays&, const Arrays& outputs) {
      const std::vector<double> order = outputs.at("Out")[0].values;
      SKIFF_ENFORCE(order.size() == static_cast<size_t>(n), kInvalidArgument, order.size(),
                    " numbers, expected ", n);
      std::vector<bool> seen(order.size());
      double product = 0;
      for (size_t i = 0; i < order.size(); ++i) {
        const auto number = static_cast<size_t>(order[i]);
        SKIFF_ENFORCE(number < order.size() && !seen[number], kInvalidArgument, "number ", order[i],
                      " at ", i, " comes twice or is out of range");
        seen[number] = true;
        product += (static_cast<double>(i) - (n - 1) / 2.0) * (order[i] - (n - 1) / 2.0);
      }
      if (n < 1000) return;
      // Place and number are not correlated: within five standard errors, 1 / sqrt(n) each.
      const double variance = (static_cast<double>(n) * n - 1) / 12;
      const double correlation = product / (n * variance);
      SKIFF_ENFORCE(std::abs(correlation) < 5 / std::sqrt(static_cast<double>(n)), kOutOfRange,
                    "places and numbers correlate with ", correlation);
    };
    cases.push_back(std::move(made));
  };
  add("int64", 4099, DType::kInt64);
  add("int32", 1001, DType::kInt32);
  add("float32", 1025, DType::kFloat32);
  add("float64", 513, DType::kFloat64);
  add("two", 2, DType::kInt64);
  add("one", 1, DType::kInt64);
  add("none", 0, DType::kInt64);
}

}  // namespace skiff::harness
