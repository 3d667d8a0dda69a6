#include "tests/operators/optimizer/update_case.h"

namespace skiff::harness {
namespace {

// `mu` is exact in float32, as the attribute is a float.
UpdateCase Momentum(const std::string& name, const std::string& type, bool nesterov) {
  constexpr double kMu = 0.875;
  return {.name = name,
          .type = type,
          .states = {{.input = "Velocity", .output = "VelocityOut"}},
          .attrs = {{"mu", static_cast<float>(kMu)}, {"use_nesterov", nesterov}},
          .update = [nesterov](UpdatedParameter& p) {
            for (size_t i = 0; i < p.param.size(); ++i) {
              double& v = p.states[0][i];
              v = kMu * v + p.grad[i];
              p.param[i] -= p.rate * (nesterov ? p.grad[i] + kMu * v : v);
            }
          }};
}

}  // namespace

void AddMomentumCases(CaseList& cases) {
  AddUpdateCases(cases, Momentum("plain", "momentum", false));
  AddSparseCases(cases, Momentum("nesterov", "momentum", true), false);
  AddUpdateCases(cases, Momentum("nesterov", "momentum", true));
  UpdateCase unused = Momentum("coefficient_without_method", "momentum", false);
  unused.attrs["regularization_coeff"] = 0.5f;
  cases.push_back(MakeUpdateCase(unused));

  UpdateCase merged = Momentum("merged", "merged_momentum", true);
  merged.attrs["regularization_method"] = std::vector<std::string>{"l2_decay"};
  merged.attrs["regularization_coeff"] = std::vector<float>{0.0625f};
  AddUpdateCases(cases, merged);
  AddSparseCases(cases, merged, false);
  merged.name = "merged_decays";
  merged.shapes = {{17}, {2, 5}, {4}};
  merged.attrs["regularization_method"] = std::vector<std::string>{"l2_decay", "", "l1_decay"};
  merged.attrs["regularization_coeff"] = std::vector<float>{0.0625f, 0.5f, 0.25f};
  cases.push_back(MakeUpdateCase(merged));
}

}  // namespace skiff::harness
