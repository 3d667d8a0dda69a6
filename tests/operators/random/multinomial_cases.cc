#include <cmath>
#include <set>

#include "tests/operators/random/sample_statistics.h"

namespace skiff::harness {
namespace {

// How often each index of [0, width) is in column `column` of the samples.
std::vector<double> Frequencies(const Array& samples, size_t column, size_t width) {
  const auto columns = static_cast<size_t>(samples.shape.dim(-1));
  std::vector<double> counts(width);
  for (size_t i = column; i < samples.values.size(); i += columns) {
    counts.at(static_cast<size_t>(samples.values[i])) += 1;
  }
  const double rows = static_cast<double>(samples.values.size() / columns);
  for (double& count : counts) count /= rows;
  return counts;
}

void CheckFrequencies(const std::vector<double>& found, const std::vector<double>& expected,
                      double draws) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const double p = expected[i];
    SKIFF_ENFORCE(std::abs(found[i] - p) <= 5 * std::sqrt(p * (1 - p) / draws), kOutOfRange,
                  "index ", i, " drawn with frequency ", found[i], ", expected ", p);
  }
}

// Rows with the same weights.
Array EqualRows(int64_t rows, const std::vector<double>& weights) {
  Array x{.shape = {rows, static_cast<int64_t>(weights.size())}, .values = {}};
  for (int64_t row = 0; row < rows; ++row) {
    for (const double weight : weights) x.values.push_back(weight);
  }
  return x;
}

OpCase MultinomialCase(const std::string& name, const Array& x, int32_t samples, bool replacement) {
  return {.name = name,
          .type = "multinomial",
          .inputs = {{"X", {x}}},
          .attrs = {{"num_samples", samples}, {"replacement", replacement}},
          .outputs = {{"Out", 1}}};
}

}  // namespace

void AddMultinomialCases(CaseList& cases) {
  constexpr int64_t kRows = 4001;
  // Weights whose sum is 8; index 2 is never drawn.
  const std::vector<double> weights = {1, 4, 0, 3};
  OpCase with = MultinomialCase("with_replacement", EqualRows(kRows, weights), 3, true);
  with.check = [](const Arrays&, const Arrays& outputs) {
    for (const size_t column : {0, 1, 2}) {
      CheckFrequencies(Frequencies(outputs.at("Out")[0], column, 4), {0.125, 0.5, 0, 0.375}, kRows);
    }
  };
  cases.push_back(std::move(with));

  OpCase without = MultinomialCase("without_replacement", EqualRows(kRows, weights), 2, false);
  without.check = [](const Arrays&, const Arrays& outputs) {
    const Array& samples = outputs.at("Out")[0];
    CheckFrequencies(Frequencies(samples, 0, 4), {0.125, 0.5, 0, 0.375}, kRows);
    // The sum over the first draw i of p_i * p_j / (1 - p_i).
    const double second_0 = 0.5 * 0.125 / 0.5 + 0.375 * 0.125 / 0.625;
    const double second_1 = 0.125 * 0.5 / 0.875 + 0.375 * 0.5 / 0.625;
    CheckFrequencies(Frequencies(samples, 1, 4), {second_0, second_1, 0, 1 - second_0 - second_1},
                     kRows);
    for (size_t i = 0; i < samples.values.size(); i += 2) {
      SKIFF_ENFORCE(samples.values[i] != samples.values[i + 1], kInvalidArgument, "row ", i / 2,
                    " draws ", samples.values[i], " twice");
    }
  };
  cases.push_back(std::move(without));

  OpCase all = MultinomialCase("all_of_a_vector", Uniform({50}, 1, 0.1, 1.0), 50, false);
  all.check = [](const Arrays&, const Arrays& outputs) {
    const auto& values = outputs.at("Out")[0].values;
    const std::set<double> different(values.begin(), values.end());
    SKIFF_ENFORCE(different.size() == 50 && *different.begin() == 0 && *different.rbegin() == 49,
                  kInvalidArgument, different.size(), " different indices of 50");
  };
  cases.push_back(std::move(all));

  // Rows of more weights than a warp has threads, of which the odd ones are 0.
  for (const bool replacement : {false, true}) {
    Array x = Uniform({11, 71}, 3, 0.1, 1.0);
    for (size_t i = 1; i < x.values.size(); i += 2) x.values[i] = 0;
    OpCase wide = MultinomialCase(
        replacement ? "wide_rows_with_replacement" : "wide_rows_without_replacement", x, 9,
        replacement);
    wide.check = [](const Arrays& inputs, const Arrays& outputs) {
      const auto& samples = outputs.at("Out")[0].values;
      for (size_t i = 0; i < samples.size(); ++i) {
        const size_t at = i / 9 * 71 + static_cast<size_t>(samples[i]);
        SKIFF_ENFORCE(samples[i] >= 0 && samples[i] < 71 && inputs.at("X")[0].values[at] > 0,
                      kOutOfRange, "sample ", i, " is ", samples[i],
                      ", expected an index of a positive weight");
      }
    };
    cases.push_back(std::move(wide));
  }

  for (const bool replacement : {false, true}) {
    const std::string suffix = replacement ? "_with_replacement" : "_without_replacement";
    OpCase certain =
        MultinomialCase("certain" + suffix, Values({2, 3}, {0, 2, 0, 0, 0, 1}), 1, replacement);
    certain.reference = [](const Arrays&) {
      return Arrays{{"Out", {Values({2, 1}, {1, 2}, DType::kInt64)}}};
    };
    cases.push_back(std::move(certain));
    OpCase empty = MultinomialCase("no_rows" + suffix, Uniform({0, 3}, 2), 2, replacement);
    empty.reference = [](const Arrays&) {
      return Arrays{{"Out", {Values({0, 2}, {}, DType::kInt64)}}};
    };
    cases.push_back(std::move(empty));
  }
}

}  // namespace skiff::harness
