// Changed programs compute or throw an Error, and nothing else: they don't leave their memory,
// don't hang, and give the same between guards as with reuse (mutant_check.h).
//
//   bazel run --config=opt //tests/fuzz:program_fuzz_test -- --mutants=1000000 --jobs=8
//   bazel run --config=opt //tests/fuzz:program_fuzz_test -- --mutant=123
//
// The second command prints one mutant, and, if it fails, what is left of it after all ops and
// fetches are gone that the failure doesn't need. docs/fuzzing.md
#include <gflags/gflags.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_processes.h"
#include "tests/harness/memory_check.h"

#ifdef __SANITIZE_ADDRESS__
DEFINE_uint64(mutants, 100, "how many mutants are tried");
#else
DEFINE_uint64(mutants, 2000, "how many mutants are tried");
#endif
DEFINE_uint64(first_mutant, 0, "the first one's number");
DEFINE_int32(jobs, 2, "how many processes run them");
DEFINE_int64(mutant, -1, "prints this mutant, shrunk if it fails, and tries no others");

namespace skiff::fuzz {
namespace {

const std::vector<Seed>& Seeds() {
  static const std::vector<Seed>& seeds = *[] {
    std::vector<std::string> files;
    for (const char* folder : {"paddle_beam_search", "paddle_gru", "paddle_lstm",
                               "paddle_nested_cond", "paddle_while", "paddle_encoder"}) {
      files.push_back(StrCat("tests/tools/run_program/", folder));
    }
    return new std::vector<Seed>(SeedPrograms(files));
  }();
  return seeds;
}

harness::Workload AsWorkload(const Mutant& mutant) {
  return {.name = mutant.seed->name,
          .initial = mutant.seed->variables,
          .startup = nullptr,
          .programs = {mutant.program},
          .runs = {{.program = 0, .feeds = mutant.feeds, .fetches = mutant.fetches}}};
}

Mutant Smaller(Mutant mutant, const harness::Workload& workload) {
  mutant.program = workload.programs[0]->Clone();
  mutant.fetches = workload.runs.empty() ? FetchList() : workload.runs[0].fetches;
  return mutant;
}

// Prints a mutant, and what is left of it if it fails.
void Explain(uint64_t number) {
  const Mutant mutant = MakeMutant(Seeds(), number);
  const std::string failure = FailureOf(mutant);
  if (failure.empty()) {
    std::cout << MutantText(mutant);
    return;
  }
  const harness::Workload small =
      harness::Shrink(AsWorkload(mutant), [&](const harness::Workload& workload) {
        return !workload.runs.empty() && !FailureOf(Smaller(mutant, workload)).empty();
      });
  const Mutant least = Smaller(mutant, small);
  std::cout << "before: " << failure << "\nshrunk: " << FailureOf(least) << "\n"
            << MutantText(least);
}

void PrintKinds(const std::string& what, const FuzzResult::Kinds& kinds) {
  uint64_t all = 0;
  for (const auto& [kind, found] : kinds) {
    all += found.second;
    std::cout << found.second << " " << what << ", such as --mutant=" << found.first << ": " << kind
              << "\n";
  }
  std::cout << all << " " << what << "\n";
}

TEST(ProgramFuzz, AMutantDependsOnItsNumber) {
  for (const uint64_t number : {0, 17, 1'000'000}) {
    EXPECT_EQ(MutantText(MakeMutant(Seeds(), number)), MutantText(MakeMutant(Seeds(), number)));
  }
}

TEST(ProgramFuzz, SeedsComputeTheSameBetweenGuards) {
  for (const Seed& seed : Seeds()) {
    Mutant unchanged;
    unchanged.seed = &seed;
    unchanged.program = seed.program->Clone();
    unchanged.feeds = seed.feeds;
    unchanged.fetches = seed.fetches;
    const MutantReport report = CheckMutant(unchanged);
    EXPECT_EQ(report.end, MutantReport::End::kComputed) << seed.name << ": " << report.unverified;
    EXPECT_EQ(report.problem, "") << seed.name;
  }
}

TEST(ProgramFuzz, MutantsComputeOrThrow) {
  if (FLAGS_mutant >= 0) return Explain(static_cast<uint64_t>(FLAGS_mutant));
  const FuzzResult result = RunMutants(Seeds(), FLAGS_first_mutant, FLAGS_mutants, FLAGS_jobs);
  for (const FuzzFailure& failure : result.failures) {
    ADD_FAILURE() << "--mutant=" << failure.mutant << ": " << failure.what;
  }
  std::cout << "refused by the codec " << result.ends[0] << ", by verify " << result.ends[1]
            << ", by compile " << result.ends[2] << ", by a run " << result.ends[3] << ", computed "
            << result.ends[4] << "\n";
  PrintKinds("verified, but refused", result.unverified);
  PrintKinds("computed, though verify refuses", result.only_verify);
}

}  // namespace
}  // namespace skiff::fuzz

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  // A process with other threads couldn't fork.
  omp_set_num_threads(1);
  return RUN_ALL_TESTS();
}
