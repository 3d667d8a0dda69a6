// Every operator of Skiff is documented, runs on the CPU and is tested.
#include "framework/op/registry.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "tests/harness/all_cases.h"
#include "tests/harness/case_coverage.h"
#include "tests/harness/kernel_coverage.h"
#include "tests/harness/wrong_inputs.h"

namespace skiff::harness {
namespace {

const std::map<std::string, std::string> kWithoutCase = {
    {"feed", "the executor binds its output to what is fed"},
    {"fetch", "the executor copies its input out"},
};

const std::map<std::string, std::string> kUncheckedGradient = {
    {"increment", "its gradient op is no derivative: it takes the step back"},
};

const std::map<std::string, std::string> kAcceptedWrongInputs = {
    {"dropout_grad Out@GRAD: other dtype", "nothing but the gradient tells the dtype of X"},
    {"softmax_with_cross_entropy_grad Softmax: other dims",
     "nothing but Softmax tells the number of classes"},
    {"smooth_l1_loss_grad Diff: other dims", "nothing but Diff tells the dims of X"},
    {"smooth_l1_loss_grad Diff: other rank", "nothing but Diff tells the dims of X"},
    {"kldiv_loss_grad Loss@GRAD: other rank", "a sum of one element has any rank"},
    {"mean_grad Out@GRAD: other rank", "a sum of one element has any rank"},
    {"reduce_sum_grad Out@GRAD: other rank", "a sum of one element has any rank"},
    {"reduce_sum_grad X: other rank", "a sum of one element has any rank"},
    {"squared_l2_norm_grad Out@GRAD: other rank", "a sum of one element has any rank"},
    {"flatten2_grad Out@GRAD: other rank", "XShape tells the number of elements alone"},
    {"flatten2_grad XShape: other rank", "nothing but XShape tells the dims of X"},
    {"flatten_contiguous_range_grad Out@GRAD: other rank",
     "XShape tells the number of elements alone"},
    {"flatten_contiguous_range_grad XShape: other rank", "nothing but XShape tells the dims of X"},
    {"reshape2_grad Out@GRAD: other rank", "XShape tells the number of elements alone"},
    {"reshape2_grad XShape: other rank", "nothing but XShape tells the dims of X"},
    {"squeeze2_grad Out@GRAD: other rank", "XShape tells the number of elements alone"},
    {"squeeze2_grad XShape: other rank", "nothing but XShape tells the dims of X"},
    {"unsqueeze2_grad Out@GRAD: other rank", "XShape tells the number of elements alone"},
    {"unsqueeze2_grad XShape: other rank", "nothing but XShape tells the dims of X"},
};

const CaseList& Cases() {
  static const CaseList& cases = *[] {
    auto* list = new CaseList;
    AddAllCases(*list);
    return list;
  }();
  return cases;
}

TEST(DefaultOpRegistry, HasDocumentationKernelAndCaseForEveryOp) {
  for (const std::string& problem :
       CoverageProblems(DefaultOpRegistry(), Cases(), kWithoutCase, kUncheckedGradient)) {
    ADD_FAILURE() << problem;
  }
}

// Each test of a family runs every kernel that accepts its cases, so these have run.
TEST(DefaultOpRegistry, HasACaseForEveryKernelCandidate) {
  for (const std::string& kernel : KernelsWithoutCase(DefaultOpRegistry(), Cases())) {
    const std::string type = kernel.substr(0, kernel.find('/'));
    if (!kWithoutCase.contains(type)) ADD_FAILURE() << kernel << " accepts no case";
  }
}

// Whether the case runs is up to the machine: see cuda_test.
TEST(DefaultOpRegistry, HasACaseForEveryCudaKernel) {
  for (const std::string& kernel :
       KernelsWithoutCase(DefaultOpRegistry(), Cases(), Place::Cuda())) {
    ADD_FAILURE() << kernel << " accepts no case";
  }
}

TEST(DefaultOpRegistry, RefusesInputsOfGradientOpsThatDoNotFit) {
  const std::set<std::string> accepted = AcceptedWrongInputs(DefaultOpRegistry(), Cases());
  for (const std::string& wrong : accepted) {
    if (!kAcceptedWrongInputs.contains(wrong)) ADD_FAILURE() << "accepts " << wrong;
  }
  for (const auto& [wrong, reason] : kAcceptedWrongInputs) {
    EXPECT_TRUE(accepted.contains(wrong)) << "refuses " << wrong << ", which is listed as accepted";
  }
}

}  // namespace
}  // namespace skiff::harness
