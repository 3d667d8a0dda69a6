#include "framework/comm/rank_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "framework/base/parallel.h"
#include "tests/harness/error_text.h"
#include "tests/harness/thread_ranks.h"

namespace skiff {
namespace {

using ::testing::Each;

// Binds the calling thread to the first of its cores, as mpirun does with a rank.
void BindToOneCore() {
  cpu_set_t cores;
  ASSERT_EQ(sched_getaffinity(0, sizeof(cores), &cores), 0);
  int core = 0;
  while (!CPU_ISSET(core, &cores)) ++core;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  ASSERT_EQ(sched_setaffinity(0, sizeof(cores), &cores), 0);
}

TEST(CoresOfRank, AreItsShareOfTheHost) {
  const auto cores = static_cast<int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  EXPECT_EQ(CoresOfRank({.size = 2, .local_size = 2}),
            std::min<int32_t>(omp_get_num_procs(), std::max(1, cores / 2)));
  EXPECT_EQ(CoresOfRank({.size = 1000, .local_size = cores + 1}), 1) << "more ranks than cores";
}

TEST(CoresOfRank, AreNoMoreThanTheRankIsBoundTo) {
  std::thread([] {
    BindToOneCore();
    EXPECT_EQ(CoresOfRank(World()), 1);
    EXPECT_EQ(CoresOfRank({.size = 2, .local_size = 1}), 1) << "alone on its host";
  }).join();
}

// OpenMP reads the variable when a process starts; what the process has said since counts more.
TEST(ThreadsOfRank, AreTheFewestThatOpenMpHasIfTheVariableIsSet) {
  setenv("OMP_NUM_THREADS", "4", 1);
  EXPECT_THAT(RunOnThreadRanks(3, {},
                               [](Communicator* own) {
                                 omp_set_num_threads(7 - own->world().rank);
                                 EXPECT_EQ(ThreadsOfRank(own), 5);
                               }),
              Each(""));
}

TEST(ThreadsOfRank, ShareTheCores) {
  unsetenv("OMP_NUM_THREADS");
  constexpr int32_t kRanks = 3;
  std::atomic<int32_t> sum = 0;
  EXPECT_THAT(RunOnThreadRanks(kRanks, {},
                               [&](Communicator* own) {
                                 const int32_t threads = ThreadsOfRank(own);
                                 EXPECT_GE(threads, 1);
                                 sum += threads;
                               }),
              Each(""));
  EXPECT_LE(sum, std::max<int32_t>(kRanks, sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_EQ(sum % kRanks, 0);
}

TEST(ThreadsOfRank, AloneAreAllCores) {
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(ThreadsOfRank(nullptr), omp_get_num_procs());
}

TEST(PlaceOfRank, IsTheDeviceOfItsNumberOnTheHost) {
  const World world = {.rank = 5, .size = 8, .local_rank = 1, .local_size = 4};
  EXPECT_EQ(PlaceOfRank("cuda", world), Place::Cuda(1));
  EXPECT_EQ(PlaceOfRank("cuda:3", world), Place::Cuda(3));
  EXPECT_EQ(PlaceOfRank("cpu", world), Place::Cpu());
  EXPECT_EQ(PlaceOfRank("cuda", World()), Place::Cuda(0));
  EXPECT_EQ(ErrorText([&] { PlaceOfRank("gpu", world); }),
            "place \"gpu\": expected cpu, cuda or cuda:N");
}

}  // namespace
}  // namespace skiff
