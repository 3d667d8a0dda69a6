// Whatever attributes and arguments an op gets, it either computes or throws an Error that says
// what is wrong.
#include "tests/harness/perturbed_op.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/harness/all_cases.h"

namespace skiff::harness {
namespace {

constexpr size_t kMaxShownProblems = 12;

class PerturbedOpTest : public ::testing::Test {
 public:
  explicit PerturbedOpTest(const std::vector<const OpCase*>& cases) : cases_(cases) {}

  void TestBody() override {
    std::vector<std::string> problems;
    int64_t refused = 0;
    for (const OpCase* op_case : cases_) {
      const PerturbationReport report = CheckPerturbations(DefaultOpRegistry(), *op_case);
      problems.insert(problems.end(), report.problems.begin(), report.problems.end());
      refused += report.refused;
    }
    // At least an attribute or input of a wrong type.
    EXPECT_GT(refused, 0);
    const size_t shown = std::min(problems.size(), kMaxShownProblems);
    for (size_t i = 0; i < shown; ++i) ADD_FAILURE() << problems[i];
    if (shown < problems.size()) ADD_FAILURE() << problems.size() - shown << " more problems";
  }

 private:
  const std::vector<const OpCase*>& cases_;
};

int RunTests(int* argc, char** argv) {
  ::testing::InitGoogleTest(argc, argv);
  CaseList cases;
  AddAllCases(cases);
  std::map<std::string, std::vector<const OpCase*>> by_type;
  for (const OpCase& op_case : cases) {
    if (IsPerturbed(op_case)) by_type[op_case.type].push_back(&op_case);
  }
  for (const auto& [type, of_type] : by_type) {
    ::testing::RegisterTest(
        "PerturbedOp", type.c_str(), nullptr, nullptr, __FILE__, __LINE__,
        [&of_type]() -> ::testing::Test* { return new PerturbedOpTest(of_type); });
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace skiff::harness

int main(int argc, char** argv) { return skiff::harness::RunTests(&argc, argv); }
