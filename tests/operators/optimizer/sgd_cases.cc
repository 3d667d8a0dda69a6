#include "tests/operators/optimizer/update_case.h"

namespace skiff::harness {
namespace {

void Sgd(UpdatedParameter& p) {
  for (size_t i = 0; i < p.param.size(); ++i) p.param[i] -= p.rate * p.grad[i];
}

}  // namespace

void AddSgdCases(CaseList& cases) {
  const UpdateCase sgd{.name = "plain", .type = "sgd", .update = Sgd};
  AddUpdateCases(cases, sgd);
  AddSparseCases(cases, sgd, true);
  cases.push_back(SparseCase(sgd, true, CrowdedSelectedRows()));

  UpdateCase l1 = sgd;
  l1.name = "l1_decay";
  l1.attrs = {{"regularization_method", std::string("l1_decay")}, {"regularization_coeff", 0.25f}};
  cases.push_back(MakeUpdateCase(l1));
  cases.back().inputs["Param"][0].values[3] = 0;  // which has no sign
  l1.name = "growth_by_l1";
  l1.attrs["regularization_coeff"] = -0.25f;
  cases.push_back(MakeUpdateCase(l1));
  cases.back().inputs["Param"][0].values[3] = 0;

  cases.push_back(MakeUpdateCase(sgd));
  cases.back().name = "scalar_rate";
  cases.back().inputs["LearningRate"] = {Values(Shape(), {0.125})};

  UpdateCase words = sgd;
  words.name = "bert_words";
  words.shapes = {{30522, 768}};
  cases.push_back(MakeUpdateCase(words));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
