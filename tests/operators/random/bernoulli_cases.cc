#include <cmath>

#include "tests/operators/random/sample_statistics.h"

namespace skiff::harness {

void AddBernoulliCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x) {
    OpCase made{.name = name, .type = "bernoulli", .inputs = {{"X", {x}}}, .outputs = {{"Out", 1}}};
    made.check = [](const Arrays& inputs, const Arrays& outputs) {
      const Array& p = inputs.at("X")[0];
      const Array& out = outputs.at("Out")[0];
      double surplus = 0;
      double variance = 0;
      for (size_t i = 0; i < p.values.size(); ++i) {
        const double drawn = out.values[i];
        SKIFF_ENFORCE(drawn == 0.0 || drawn == 1.0, kInvalidArgument, "drawn ", drawn);
        const bool certain = p.values[i] == 0.0 || p.values[i] == 1.0;
        SKIFF_ENFORCE(!certain || drawn == p.values[i], kInvalidArgument, "drawn ", drawn,
                      " with probability ", p.values[i]);
        // Weighted by p, so that it matters which elements are drawn.
        surplus += (drawn - p.values[i]) * p.values[i];
        variance += p.values[i] * p.values[i] * p.values[i] * (1 - p.values[i]);
      }
      SKIFF_ENFORCE(std::abs(surplus) <= 5 * std::sqrt(variance), kOutOfRange, "surplus of ",
                    surplus, " at a standard deviation of ", std::sqrt(variance));
    };
    cases.push_back(std::move(made));
  };
  add("half", Uniform({97, 113}, 1, 0.5, 0.5));
  add("any_probability", Uniform({97, 113}, 2, 0.0, 1.0));
  add("seldom", Uniform({20001}, 3, 0.01, 0.02));
  add("certain", Values({6}, {0, 1, 1, 0, 0, 1}));
  add("scalar", Uniform(Shape(), 5, 0.2, 0.8));
  add("empty", Uniform({0, 3}, 6));
}

}  // namespace skiff::harness
