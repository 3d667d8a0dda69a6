#include "tests/harness/case_test_main.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "memory/places.h"
#include "tests/harness/cuda_kernels.h"
#include "tests/harness/cuda_place.h"
#include "tests/harness/kernel_coverage.h"
#include "tests/harness/op_runner.h"

namespace skiff::harness {
namespace {

// A broken kernel fails in every combination; the first few failures are enough to find it.
constexpr size_t kMaxShownFailures = 12;

void ExpectNoFailures(const CaseReport& report) {
  EXPECT_GT(report.runs, 0) << "no kernel ran";
  const size_t shown = std::min(report.failures.size(), kMaxShownFailures);
  for (size_t i = 0; i < shown; ++i) ADD_FAILURE() << report.failures[i];
  if (shown < report.failures.size()) {
    ADD_FAILURE() << report.failures.size() - shown << " more failures";
  }
}

class CaseTest : public ::testing::Test {
 public:
  CaseTest(const OpRegistry& registry, const OpCase& op_case)
      : registry_(registry), case_(op_case) {}

  void TestBody() override { ExpectNoFailures(RunCase(registry_, case_)); }

 private:
  const OpRegistry& registry_;
  const OpCase& case_;
};

// Returns why the machine can't run on a place; empty if it can.
std::string WhyMissing(Place place) {
  try {
    AllocatorOf(place);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

class CudaCaseTest : public ::testing::Test {
 public:
  CudaCaseTest(const OpRegistry& registry, const OpCase& op_case)
      : registry_(registry), case_(op_case) {}

  void TestBody() override {
    const std::string missing = WhyMissing(CudaPlace());
    if (!missing.empty()) GTEST_SKIP() << missing;
    ExpectNoFailures(RunCase(registry_, case_, {.place = CudaPlace()}));
  }

 private:
  const OpRegistry& registry_;
  const OpCase& case_;
};

class NoKernelsTest : public ::testing::Test {
 public:
  void TestBody() override { GTEST_SKIP() << "this build has no CUDA kernels"; }
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

int RunCudaCaseTests(int* argc, char** argv, const OpRegistry& registry, const CaseList& cases) {
  ::testing::InitGoogleTest(argc, argv);
  if (!HasAnyCudaKernels(registry)) {
    ::testing::RegisterTest("Cuda", "HasKernels", nullptr, nullptr, __FILE__, __LINE__,
                            []() -> ::testing::Test* { return new NoKernelsTest; });
    return RUN_ALL_TESTS();
  }
  for (const OpCase& op_case : cases) {
    if (op_case.benchmark_only) continue;
    if (KernelsOfCase(registry, op_case, CudaPlace()).empty()) continue;
    const std::string suite = "cuda_" + op_case.type;
    ::testing::RegisterTest(suite.c_str(), op_case.name.c_str(), nullptr, nullptr, __FILE__,
                            __LINE__, [&registry, &op_case]() -> ::testing::Test* {
                              return new CudaCaseTest(registry, op_case);
                            });
  }
  return RUN_ALL_TESTS();
}

}  // namespace skiff::harness
