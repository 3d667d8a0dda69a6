#include "framework/comm/launched_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <string>

#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Sets environment variables while it lives, without any other variable of a launcher.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& variables) {
    Clear();
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() { Clear(); }

 private:
  static void Clear() {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_NTASKS",
                             "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SKIFF_MPI_PLUGIN"}) {
      unsetenv(name);
    }
  }
};

// No file is there.
const std::pair<const std::string, std::string> kNoPlugin = {"SKIFF_MPI_PLUGIN", "/nowhere/x.so"};

TEST(LaunchedRanks, AreNoneWithoutALauncher) {
  const Environment environment({kNoPlugin});
  EXPECT_EQ(LaunchedRanks(), nullptr);
}

TEST(LaunchedRanks, AreNoneForAProcessThatIsStartedAlone) {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const Environment environment({{variable, "1"}, {"PMIX_RANK", "0"}, kNoPlugin});
    EXPECT_EQ(LaunchedRanks(), nullptr) << variable;
  }
}

TEST(LaunchedRanks, AreNoneInAShellOfAnAllocationOfSlurm) {
  const Environment environment({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}, kNoPlugin});
  EXPECT_EQ(LaunchedRanks(), nullptr);
}

TEST(LaunchedRanks, NeedThePlugin) {
  for (const auto& [variable, value] : std::map<std::string, std::string>{
           {"OMPI_COMM_WORLD_SIZE", "2"},
           {"PMI_SIZE", "3"},
           {"SLURM_STEP_NUM_TASKS", "4"},
           {"PMIX_RANK", "0"},
       }) {
    const Environment environment({{variable, value}, kNoPlugin});
    EXPECT_THAT(ErrorText(ErrorCode::kNotFound, [] { LaunchedRanks(); }),
                AllOf(StartsWith(variable + "=" + value + " (a launcher has started ranks): "),
                      HasSubstr("/nowhere/x.so: cannot open"),
                      HasSubstr("apt-get install libopenmpi-dev openmpi-bin")));
  }
}

TEST(LaunchedRanks, NeedAPluginOfThisVersion) {
  const Environment environment(
      {{"PMI_SIZE", "2"}, {"SKIFF_MPI_PLUGIN", "tests/framework/comm/libother_plugin.so"}});
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [] { LaunchedRanks(); }),
              HasSubstr("has version 0 of its interface, expected "));
}

TEST(LaunchedRanks, RefuseBadNumbers) {
  for (const char* value : {"", "x", "0", "-3", "2x", "99999999999"}) {
    const Environment environment({{"PMI_SIZE", value}, kNoPlugin});
    EXPECT_EQ(
        InvalidArgumentText([] { LaunchedRanks(); }),
        std::string("environment variable PMI_SIZE=") + value + ", expected a number of ranks");
  }
}

TEST(LaunchedRanks, RefuseABadLimit) {
  const Environment environment({{"PMI_SIZE", "2"}, kNoPlugin});
  EXPECT_THAT(InvalidArgumentText([] { LaunchedRanks({.time_limit = 0}); }),
              HasSubstr("time limit of 0 s, expected more than 0"));
}

}  // namespace
}  // namespace skiff
