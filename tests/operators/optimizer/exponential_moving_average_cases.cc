#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

struct ExponentialMovingAverageCase {
  std::string name;
  std::vector<Shape> shapes = {{5, 7}};
  float decay = 0.96875f;  // exact, as the share that is added
  std::optional<int64_t> steps;
};

double DecayOf(const ExponentialMovingAverageCase& made) {
  if (!made.steps) return made.decay;
  const auto t = static_cast<double>(std::max<int64_t>(*made.steps, 0));
  return std::min<double>(made.decay, (1 + t) / (10 + t));
}

OpCase MakeExponentialMovingAverageCase(const ExponentialMovingAverageCase& made) {
  OpCase result{.name = made.name, .type = "exponential_moving_average"};
  uint64_t seed = 1;
  for (size_t i = 0; i < made.shapes.size(); ++i) {
    result.inputs["Param"].push_back(Uniform(made.shapes[i], seed++));
    result.inputs["Average"].push_back(Uniform(made.shapes[i], seed++));
    const double product = 1.0 / static_cast<double>(1 + i);
    result.inputs["DecayProduct"].push_back(Values({1}, {product}, DType::kFloat64));
  }
  if (made.steps) {
    const auto steps = static_cast<double>(*made.steps);
    result.inputs["ThresSteps"] = {Values({1}, {steps}, DType::kInt64)};
  }
  for (const char* slot : {"AverageOut", "DecayProductOut"}) {
    result.outputs.emplace_back(slot, static_cast<int>(made.shapes.size()));
  }
  result.attrs = {{"decay", made.decay}};
  result.reference = [decay = DecayOf(made)](const Arrays& inputs) {
    Arrays after = {{"AverageOut", inputs.at("Average")},
                    {"DecayProductOut", inputs.at("DecayProduct")}};
    for (size_t i = 0; i < after["AverageOut"].size(); ++i) {
      Array& average = after["AverageOut"][i];
      const Array& param = inputs.at("Param")[i];
      for (size_t j = 0; j < param.values.size(); ++j) {
        average.values[j] = decay * average.values[j] + (1 - decay) * param.values[j];
      }
      after["DecayProductOut"][i].values[0] *= decay;
    }
    return after;
  };
  return result;
}

}  // namespace

void AddExponentialMovingAverageCases(CaseList& cases) {
  const auto add = [&](const ExponentialMovingAverageCase& made) {
    cases.push_back(MakeExponentialMovingAverageCase(made));
  };
  add({.name = "one_parameter"});
  add({.name = "no_decay", .decay = 0.0f});
  add({.name = "empty", .shapes = {{0, 4}}});
  add({.name = "one_number", .shapes = {Shape()}});
  add({.name = "several_threads", .shapes = {{131, 257}}});
  add({.name = "list", .shapes = {{5, 7}, {0}, {16}, {131, 257}, {1}, {3, 3}}});
  // Decays that are exact in float32: 1 / 2, 3 / 4, 63 / 64.
  add({.name = "at_step_8", .steps = 8});
  add({.name = "list_at_step_26", .shapes = {{17}, {2, 5}}, .steps = 26});
  add({.name = "at_a_step_below_the_threshold", .decay = 0.9921875f, .steps = 566});
  add({.name = "at_the_last_step_of_all", .steps = int64_t{1} << 62});
  // A tenth: the decay itself is rounded to float32, and the product is that of the rounded one.
  OpCase first = MakeExponentialMovingAverageCase({.name = "before_the_first_step", .steps = -3});
  first.dtypes = {DType::kFloat64};
  cases.push_back(std::move(first));
  for (const bool skips : {true, false}) {
    OpCase made = MakeExponentialMovingAverageCase(
        {.name = skips ? "list_skipped" : "list_not_skipped", .shapes = {{6, 2}, {3}}});
    made.inputs["SkipUpdate"] = {Values({1}, {skips ? 1.0 : 0.0}, DType::kBool)};
    if (skips) {
      made.reference = [](const Arrays& inputs) {
        return Arrays{{"AverageOut", inputs.at("Average")},
                      {"DecayProductOut", inputs.at("DecayProduct")}};
      };
    }
    cases.push_back(std::move(made));
  }
  OpCase large =
      MakeExponentialMovingAverageCase({.name = "4M_elements", .shapes = {{1024, 4096}}});
  large.benchmark_only = true;
  cases.push_back(std::move(large));
}

}  // namespace skiff::harness
