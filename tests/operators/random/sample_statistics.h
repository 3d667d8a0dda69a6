// Checks of random samples. Errors say what was found and expected.
#pragma once

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "framework/base/error.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// The known properties of a distribution.
struct Distribution {
  double mean = 0;
  double deviation = 1;
  double low = -INFINITY;  // the bound below
  double high = INFINITY;  // the bound above
};

// Checks that the mean is within five standard errors, the standard deviation within a tenth, and
// all numbers within bounds.
inline void CheckSample(const std::vector<double>& sample, const Distribution& expected) {
  const double count = static_cast<double>(sample.size());
  double sum = 0;
  double squares = 0;
  for (const double value : sample) {
    SKIFF_ENFORCE(value >= expected.low && value <= expected.high, kOutOfRange, "drawn ", value,
                  ", expected a number in [", expected.low, ", ", expected.high, "]");
    sum += value;
    squares += (value - expected.mean) * (value - expected.mean);
  }
  const double mean = sum / count;
  const double deviation = std::sqrt(squares / count);
  SKIFF_ENFORCE(std::abs(mean - expected.mean) <= 5 * expected.deviation / std::sqrt(count),
                kOutOfRange, "mean ", mean, ", expected ", expected.mean);
  SKIFF_ENFORCE(std::abs(deviation / expected.deviation - 1) < 0.1, kOutOfRange,
                "standard deviation ", deviation, ", expected ", expected.deviation);
}

// Checks that almost all numbers differ, so that no block of the stream is used twice.
inline void CheckNoRepetition(const std::vector<double>& sample) {
  const std::set<double> different(sample.begin(), sample.end());
  SKIFF_ENFORCE(different.size() * 1000 >= sample.size() * 998, kInvalidArgument, different.size(),
                " different numbers among ", sample.size());
}

// A case of an op that makes a random tensor: of each dtype, large and small.
inline void AddRandomTensorCases(const std::string& type, const AttributeMap& attrs,
                                 const Distribution& expected, CaseList& cases) {
  const auto add = [&](const std::string& name, DType dtype, const std::vector<int32_t>& shape,
                       int32_t seed, std::function<void(const std::vector<double>&)> check) {
    OpCase made{.name = name,
                .type = type,
                .attrs = attrs,
                .outputs = {{"Out", 1}},
                .dtypes = {DType::kFloat32}};
    made.attrs["shape"] = shape;
    made.attrs["dtype"] = static_cast<int32_t>(dtype);
    if (seed != 0) made.attrs["seed"] = seed;
    made.check = [check = std::move(check)](const Arrays&, const Arrays& outputs) {
      check(outputs.at("Out")[0].values);
    };
    cases.push_back(std::move(made));
  };
  const auto sample = [expected](const std::vector<double>& values) {
    CheckSample(values, expected);
    CheckNoRepetition(values);
  };
  add("float32", DType::kFloat32, {113, 71}, 0, sample);
  add("float64", DType::kFloat64, {113, 71}, 0, sample);
  add("seed_float32", DType::kFloat32, {113, 71}, 5, sample);
  add("seed_float64", DType::kFloat64, {113, 71}, 5, sample);
  add("several_threads", DType::kFloat32, {20001}, 9, sample);
  add("empty", DType::kFloat32, {0, 3}, 0, [](const std::vector<double>& values) {
    SKIFF_ENFORCE(values.empty(), kInvalidArgument, values.size(), " values, expected none");
  });
}

}  // namespace skiff::harness
