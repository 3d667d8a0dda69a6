// Every operator of Skiff is documented, runs on the CPU and is tested.
#include "framework/op/registry.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/harness/all_cases.h"
#include "tests/harness/case_coverage.h"

namespace skiff::harness {
namespace {

const std::map<std::string, std::string> kWithoutCase = {
    {"feed", "the executor binds its output to what is fed"},
    {"fetch", "the executor copies its input out"},
};

const std::map<std::string, std::string> kUncheckedGradient = {
    {"increment", "its gradient op is no derivative: it takes the step back"},
};

TEST(DefaultOpRegistry, HasDocumentationKernelAndCaseForEveryOp) {
  CaseList cases;
  AddAllCases(cases);
  for (const std::string& problem :
       CoverageProblems(DefaultOpRegistry(), cases, kWithoutCase, kUncheckedGradient)) {
    ADD_FAILURE() << problem;
  }
}

}  // namespace
}  // namespace skiff::harness
