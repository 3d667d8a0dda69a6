#include "framework/transpiler/task_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int32_t> AsGiven(const TaskGraph& graph) {
  std::vector<int32_t> order(graph.tasks.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

int64_t MostLiveBytes(const TaskGraph& graph, const std::vector<int32_t>& order) {
  return std::ranges::max(LiveBytes(graph, order));
}

bool MayRun(const TaskGraph& graph, const std::vector<int32_t>& order) {
  std::vector<bool> has_run(order.size(), false);
  for (const int32_t task : order) {
    for (const int32_t earlier : graph.tasks[static_cast<size_t>(task)].after) {
      if (!has_run[static_cast<size_t>(earlier)]) return false;
    }
    has_run[static_cast<size_t>(task)] = true;
  }
  return true;
}

TEST(TaskOrder, CountsBuffersFromTheirFirstTaskToTheLast) {
  TaskGraph graph;
  graph.buffers = {{.bytes = 1}, {.bytes = 10, .lives_to_end = true}, {.bytes = 100}, {.bytes = 9}};
  graph.tasks = {{.buffers = {0}},
                 {.buffers = {1}},
                 {.buffers = {0, 2}, .workspace_bytes = 1000},
                 {.buffers = {2}}};
  EXPECT_THAT(LiveBytes(graph, {0, 1, 2, 3}), ElementsAre(1, 11, 1111, 110));
  EXPECT_THAT(LiveBytes(graph, {1, 0, 2, 3}), ElementsAre(10, 11, 1111, 110));
  graph.buffers[2].lives_from_start = true;
  EXPECT_THAT(LiveBytes(graph, {0, 1, 2, 3}), ElementsAre(101, 111, 1111, 110));
}

TEST(TaskOrder, CountsABufferAndTheOneInItsPlaceOnce) {
  TaskGraph graph;
  graph.buffers = {{.bytes = 8}, {.bytes = 8}, {.bytes = 8}};
  graph.tasks = {
      {.buffers = {0}}, {.buffers = {0, 1, 2}, .in_place = {{0, 1}, {0, 2}}}, {.buffers = {1}}};
  EXPECT_THAT(LiveBytes(graph, {0, 1, 2}), ElementsAre(8, 16, 8));
  // It is read again.
  graph.tasks[2].buffers = {0, 1};
  EXPECT_THAT(LiveBytes(graph, {0, 1, 2}), ElementsAre(8, 24, 16));
}

TEST(TaskOrder, RunsFirstWhatLetsGoOfABuffer) {
  TaskGraph graph;
  graph.buffers = {{.bytes = 10}, {.bytes = 10}};
  graph.tasks = {{.buffers = {0}}, {.buffers = {1}}, {.buffers = {1}}, {.buffers = {0}}};
  graph.tasks[2].after = {1};
  graph.tasks[3].after = {0};
  EXPECT_THAT(OrderForMemory(graph), ElementsAre(0, 3, 1, 2));
}

// Task 4 waits for 3.
TEST(TaskOrder, RunsFirstWhatThatWaitsFor) {
  TaskGraph graph;
  graph.buffers = {{.bytes = 10}, {.bytes = 10}, {.bytes = 4}};
  graph.tasks = {{.buffers = {0}},
                 {.buffers = {1}},
                 {.after = {1}, .buffers = {1}},
                 {.buffers = {2}},
                 {.after = {0, 3}, .buffers = {0, 2}}};
  EXPECT_THAT(OrderForMemory(graph), ElementsAre(0, 3, 4, 1, 2));
}

// Buffer 0 becomes 2, as large, which task 4 lets go of.
TEST(TaskOrder, RunsFirstWhatLetsGoOfWhatABufferBecomes) {
  TaskGraph graph;
  graph.buffers = {{.bytes = 10}, {.bytes = 10}, {.bytes = 10}};
  graph.tasks = {{.buffers = {0}},
                 {.buffers = {1}},
                 {.after = {1}, .buffers = {1}},
                 {.after = {0}, .buffers = {0, 2}, .in_place = {{0, 2}}},
                 {.after = {3}, .buffers = {2}}};
  EXPECT_THAT(OrderForMemory(graph), ElementsAre(0, 3, 4, 1, 2));
}

// Nothing lets go of buffer 0 before buffer 1 is made.
TEST(TaskOrder, PutsOffWhatMakesABuffer) {
  TaskGraph graph;
  graph.buffers = {{.bytes = 10}, {.bytes = 10}, {.bytes = 10}};
  graph.tasks = {{.buffers = {0}},
                 {.buffers = {1}},
                 {.after = {1}, .buffers = {1, 2}},
                 {.after = {0, 2}, .buffers = {0, 2}}};
  EXPECT_THAT(OrderForMemory(graph), ElementsAre(1, 2, 0, 3));
}

TEST(TaskOrder, LeavesWhatGainsLittle) {
  TaskGraph graph;
  graph.buffers = {{.bytes = 1000, .lives_from_start = true, .lives_to_end = true},
                   {.bytes = 1},
                   {.bytes = 100}};
  graph.tasks = {{.buffers = {0}},
                 {.buffers = {1}},
                 {.buffers = {2}},
                 {.after = {2}, .buffers = {2}},
                 {.after = {1}, .buffers = {1}}};
  EXPECT_EQ(OrderForMemory(graph), AsGiven(graph));
  graph.buffers[1].bytes = 10;
  EXPECT_THAT(OrderForMemory(graph), ElementsAre(0, 1, 4, 2, 3));
}

TEST(TaskOrder, TakesGraphsWithoutTasksOrBytes) {
  TaskGraph graph;
  EXPECT_THAT(OrderForMemory(graph), IsEmpty());
  graph.tasks.resize(3);
  EXPECT_THAT(OrderForMemory(graph), ElementsAre(0, 1, 2));
}

// Each buffer is made by one task and read by some later ones, which may work in place.
TaskGraph RandomGraph(uint32_t seed, size_t tasks) {
  std::mt19937 random(seed);
  TaskGraph graph;
  graph.tasks.resize(tasks);
  for (size_t maker = 0; maker < tasks; ++maker) {
    const auto buffer = static_cast<int32_t>(graph.buffers.size());
    graph.buffers.push_back({.bytes = 1 + static_cast<int64_t>(random() % 9)});
    graph.tasks[maker].buffers.push_back(buffer);
    for (size_t reader = maker + 1; reader < tasks; ++reader) {
      if (random() % tasks > 1) continue;
      graph.tasks[reader].buffers.push_back(buffer);
      graph.tasks[reader].after.push_back(static_cast<int32_t>(maker));
      if (random() % 2 == 0) {
        graph.buffers.back().bytes = 4;
        graph.tasks[reader].in_place.emplace_back(buffer, static_cast<int32_t>(reader));
      }
    }
    graph.buffers.back().lives_to_end = random() % 8 == 0;
  }
  for (TaskGraph::Task& task : graph.tasks) {
    std::erase_if(task.in_place, [&](const auto& pair) {
      return graph.buffers[static_cast<size_t>(pair.first)].bytes !=
             graph.buffers[static_cast<size_t>(pair.second)].bytes;
    });
  }
  return graph;
}

TEST(TaskOrder, TakesNoMoreThanTheGivenOrderAndMostlyTheLeast) {
  constexpr uint32_t kGraphs = 200;
  int64_t given = 0;
  int64_t found = 0;
  int64_t least = 0;
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    const TaskGraph graph = RandomGraph(seed, 7);
    std::vector<int32_t> any = AsGiven(graph);
    const int64_t before = MostLiveBytes(graph, any);
    const std::vector<int32_t> order = OrderForMemory(graph);
    ASSERT_TRUE(MayRun(graph, order)) << seed;
    ASSERT_LE(MostLiveBytes(graph, order), before) << seed;
    int64_t best = before;
    do {
      if (MayRun(graph, any)) best = std::min(best, MostLiveBytes(graph, any));
    } while (std::ranges::next_permutation(any).found);
    ASSERT_GE(MostLiveBytes(graph, order), best) << seed;
    given += before;
    found += MostLiveBytes(graph, order);
    least += best;
  }
  // Of what can be gained at least nine tenths.
  EXPECT_LT(least, given);
  EXPECT_LE(10 * (found - least), given - least) << given << " " << found << " " << least;
}

TEST(TaskOrder, IsTheSameEachTime) {
  const TaskGraph graph = RandomGraph(1, 300);
  const std::vector<int32_t> order = OrderForMemory(graph);
  EXPECT_NE(order, AsGiven(graph));
  EXPECT_EQ(OrderForMemory(graph), order);
}

}  // namespace
}  // namespace skiff
