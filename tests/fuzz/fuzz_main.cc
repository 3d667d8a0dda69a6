#include "tests/fuzz/fuzz_main.h"

#include <gflags/gflags.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <iostream>

#ifdef __SANITIZE_ADDRESS__
DEFINE_uint64(mutants, 100, "how many mutants are tried");
#else
DEFINE_uint64(mutants, 2000, "how many mutants are tried");
#endif
DEFINE_uint64(first_mutant, 0, "the number of the first mutant");
DEFINE_int32(jobs, 2, "how many processes run them");
DEFINE_int64(mutant, -1, "explains this mutant, and tries no others");

namespace skiff::fuzz {

std::optional<uint64_t> OnlyMutant() {
  if (FLAGS_mutant < 0) return std::nullopt;
  return static_cast<uint64_t>(FLAGS_mutant);
}

FuzzResult RunMutantsOfFlags(const MutantCheck& check, const std::string& reader) {
  FuzzResult result =
      RunMutants(check, {.first = FLAGS_first_mutant, .count = FLAGS_mutants, .jobs = FLAGS_jobs});
  EXPECT_EQ(result.tried, FLAGS_mutants);
  for (const FuzzFailure& failure : result.failures) {
    ADD_FAILURE() << "--mutant=" << failure.mutant << ": " << failure.what;
  }
  std::cout << "refused by " << reader << " " << result.ends[0] << ", by verify " << result.ends[1]
            << ", by compile " << result.ends[2] << ", by a run " << result.ends[3] << ", computed "
            << result.ends[4] << "\n";
  return result;
}

}  // namespace skiff::fuzz

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  // A process with other threads couldn't fork.
  omp_set_num_threads(1);
  return RUN_ALL_TESTS();
}
