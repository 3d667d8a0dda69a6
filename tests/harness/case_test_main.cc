#include "tests/harness/case_test_main.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "tests/harness/op_runner.h"

namespace skiff::harness {
namespace {

// A broken kernel fails every combination: the first few tell enough.
constexpr size_t kMaxShownFailures = 12;

class CaseTest : public ::testing::Test {
 public:
  CaseTest(const OpRegistry& registry, const OpCase& op_case)
      : registry_(registry), case_(op_case) {}

  void TestBody() override {
    const CaseReport report = RunCase(registry_, case_);
    EXPECT_GT(report.runs, 0) << "no kernel ran";
    const size_t shown = std::min(report.failures.size(), kMaxShownFailures);
    for (size_t i = 0; i < shown; ++i) ADD_FAILURE() << report.failures[i];
    if (shown < report.failures.size()) {
      ADD_FAILURE() << report.failures.size() - shown << " more failures";
    }
  }

 private:
  const OpRegistry& registry_;
  const OpCase& case_;
};

class DuplicateCaseTest : public ::testing::Test {
 public:
  void TestBody() override { ADD_FAILURE() << "two cases of the op have this name"; }
};

}  // namespace

int RunCaseTests(int* argc, char** argv, const OpRegistry& registry, const CaseList& cases) {
  ::testing::InitGoogleTest(argc, argv);
  std::set<std::pair<std::string, std::string>> names;
  for (const OpCase& op_case : cases) {
    if (!names.emplace(op_case.type, op_case.name).second) {
      const std::string name = op_case.name + "_twice";
      ::testing::RegisterTest((op_case.type + "_duplicates").c_str(), name.c_str(), nullptr,
                              nullptr, __FILE__, __LINE__,
                              []() -> ::testing::Test* { return new DuplicateCaseTest; });
      continue;
    }
    if (op_case.benchmark_only) continue;
    ::testing::RegisterTest(
        op_case.type.c_str(), op_case.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
        [&registry, &op_case]() -> ::testing::Test* { return new CaseTest(registry, op_case); });
  }
  return RUN_ALL_TESTS();
}

}  // namespace skiff::harness
