// Every registered pass, on every model and on random programs: alone, in the default pipeline, and
// the pipeline without it. Losses, gradients, fetches and the scope after each step are those of no
// passes, bit by bit but for a pass that says otherwise.
//
// A new pass takes part by being registered. See tests/harness/pass_check.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "framework/op/registry.h"
#include "tests/framework/transpiler/model_workloads.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/pass_check.h"
#include "tests/harness/random_workload.h"

namespace skiff::harness {
namespace {

// More differences tell nothing more.
constexpr size_t kMaxShownFaults = 8;

void ExpectNoFaults(const Workload& workload, const WorkloadTrace& without_passes,
                    const PassChoice& choice) {
  const std::vector<std::string> faults = PassFaults(workload, without_passes, choice);
  for (size_t i = 0; i < faults.size() && i < kMaxShownFaults; ++i) {
    ADD_FAILURE() << workload.name << ", passes " << choice.name << ": " << faults[i];
  }
  if (faults.size() > kMaxShownFaults) {
    ADD_FAILURE() << faults.size() - kMaxShownFaults << " more differences";
  }
}

WorkloadTrace WithoutPasses(const Workload& workload) {
  return RunWorkload(workload, {.passes = NoPasses().options});
}

struct TracedWorkload {
  Workload workload;
  WorkloadTrace without_passes;
};

// Made once for all choices of passes.
const TracedWorkload& Traced(const ModelWorkload& model) {
  static auto& made = *new std::map<std::string, TracedWorkload>;
  const auto it = made.find(model.name);
  if (it != made.end()) return it->second;
  TracedWorkload traced{.workload = model.make()};
  traced.without_passes = WithoutPasses(traced.workload);
  return made.emplace(model.name, std::move(traced)).first->second;
}

std::string ChoiceName(const PassChoice& choice) { return choice.name; }

class EveryPassOnModels : public ::testing::TestWithParam<std::tuple<ModelWorkload, PassChoice>> {};

TEST_P(EveryPassOnModels, ChangesNoResult) {
  const auto& [model, choice] = GetParam();
  const TracedWorkload& traced = Traced(model);
  ExpectNoFaults(traced.workload, traced.without_passes, choice);
}

INSTANTIATE_TEST_SUITE_P(Models, EveryPassOnModels,
                         ::testing::Combine(::testing::ValuesIn(ModelWorkloads()),
                                            ::testing::ValuesIn(PassChoices())),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "__" +
                                  ChoiceName(std::get<1>(info.param));
                         });

class FetchesOnModels : public ::testing::TestWithParam<ModelWorkload> {};

// What is fetched decides what lives long and what is computed at all, but not what it is.
TEST_P(FetchesOnModels, ChangeNothing) {
  Workload silent = GetParam().make();
  const WorkloadTrace fetched = RunWorkload(silent);
  for (WorkloadRun& run : silent.runs) run.fetches.clear();
  EXPECT_THAT(TraceDifferences(silent, fetched, RunWorkload(silent), 0), ::testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Models, FetchesOnModels, ::testing::ValuesIn(ModelWorkloads()),
                         [](const auto& info) { return info.param.name; });

const CaseList& Cases() {
  static const CaseList& cases = *[] {
    auto* list = new CaseList;
    AddAllCases(*list);
    return list;
  }();
  return cases;
}

class EveryPassOnRandomPrograms : public ::testing::TestWithParam<uint64_t> {};

TEST_P(EveryPassOnRandomPrograms, ChangesNoResult) {
  const bool kinds[] = {false, true};
  for (const bool smooth : kinds) {
    const Workload workload =
        RandomWorkload(DefaultOpRegistry(), Cases(), GetParam(), {.smooth = smooth});
    const WorkloadTrace without_passes = WithoutPasses(workload);
    for (const PassChoice& choice : PassChoices()) {
      // A rounding error may turn a comparison round where results jump.
      if (choice.tolerance > 0 && !smooth) continue;
      ExpectNoFaults(workload, without_passes, choice);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, EveryPassOnRandomPrograms, ::testing::Range<uint64_t>(0, 60));

}  // namespace
}  // namespace skiff::harness
