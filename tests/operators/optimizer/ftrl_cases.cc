#include "tests/operators/optimizer/update_case.h"

namespace skiff::harness {
namespace {

// Numbers that are exact in float32, as the attributes are floats.
struct FtrlSettings {
  double l1 = 0.125;
  double l2 = 0.25;
  double lr_power = -0.5;
};

void UpdateByFtrl(UpdatedParameter& p, const FtrlSettings& settings) {
  if (p.rate == 0) return;
  const double l1 = settings.l1 + 1e-10;
  const double l2 = settings.l2 + 1e-10;
  for (size_t i = 0; i < p.param.size(); ++i) {
    double& n = p.states[0][i];
    double& z = p.states[1][i];
    const double old_n = n;
    n += p.grad[i] * p.grad[i];
    const double sigma =
        (std::pow(n, -settings.lr_power) - std::pow(old_n, -settings.lr_power)) / p.rate;
    z += p.grad[i] - sigma * p.param[i];
    if (std::abs(z) <= l1) {
      p.param[i] = 0;
    } else {
      const double curvature = std::pow(n, -settings.lr_power) / p.rate + 2 * l2;
      p.param[i] = -(z - std::copysign(l1, z)) / curvature;
    }
  }
}

UpdateCase Ftrl(const std::string& name, const FtrlSettings& settings = {}) {
  return {.name = name,
          .type = "ftrl",
          .states = {{.input = "SquaredAccumulator", .output = "SquaredAccumOut", .low = 0.01},
                     {.input = "LinearAccumulator", .output = "LinearAccumOut"}},
          .attrs = {{"l1", static_cast<float>(settings.l1)},
                    {"l2", static_cast<float>(settings.l2)},
                    {"lr_power", static_cast<float>(settings.lr_power)}},
          .update = [settings](UpdatedParameter& p) { UpdateByFtrl(p, settings); }};
}

}  // namespace

void AddFtrlCases(CaseList& cases) {
  AddUpdateCases(cases, Ftrl("plain"));
  AddSparseCases(cases, Ftrl("plain"), true);
  AddUpdateCases(cases, Ftrl("power", {.lr_power = -0.75}));
  cases.push_back(MakeUpdateCase(Ftrl("no_power", {.lr_power = 0})));
  cases.push_back(MakeUpdateCase(Ftrl("no_l1", {.l1 = 0})));
  for (const double lr_power : {-0.5, -0.75}) {
    UpdateCase no_rate =
        Ftrl(lr_power == -0.5 ? "no_rate" : "power_no_rate", {.lr_power = lr_power});
    no_rate.shapes = {{17}, {2, 5}, {4}};
    no_rate.rates = {0.125, 0, 0.25};
    cases.push_back(MakeUpdateCase(no_rate));
  }
  cases.push_back(MakeUpdateCase(Ftrl("no_penalties", {.l1 = 0, .l2 = 0})));
  cases.push_back(MakeUpdateCase(Ftrl("all_shrunk", {.l1 = 64})));
  cases.push_back(MakeUpdateCase(Ftrl("first_step")));
  cases.back().inputs["SquaredAccumulator"] =
      cases.back().inputs["LinearAccumulator"] = {Values({5, 7}, std::vector<double>(35, 0.0))};
  cases.push_back(MakeUpdateCase(Ftrl("first_step_without_gradient", {.l1 = 0, .l2 = 0})));
  for (const char* slot : {"SquaredAccumulator", "LinearAccumulator", "Grad"}) {
    cases.back().inputs[slot] = {Values({5, 7}, std::vector<double>(35, 0.0))};
  }
}

}  // namespace skiff::harness
