#include "framework/transpiler/min_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "framework/base/error.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(MinCutTest, TakesTheCheaperLabelOfEachNode) {
  MinCut cut;
  EXPECT_EQ(cut.AddNode(3, 2), 0);
  EXPECT_EQ(cut.AddNode(2, 3), 1);
  EXPECT_THAT(cut.Solve(), ElementsAre(false, true));
}

TEST(MinCutTest, PrefersTrueWhereItCostsNoMore) {
  MinCut cut;
  cut.AddNode(2, 2);
  cut.AddNode(0, 0);
  EXPECT_THAT(cut.Solve(), ElementsAre(true, true));
  EXPECT_THAT(MinCut().Solve(), IsEmpty());
}

// A pair costs in one direction only.
TEST(MinCutTest, WeighsPairs) {
  const auto labels = [](int64_t cost, bool reversed) {
    MinCut cut;
    const int a = cut.AddNode(0, 4);
    const int b = cut.AddNode(3, 0);
    cut.AddPairCost(reversed ? b : a, reversed ? a : b, cost);
    return cut.Solve();
  };
  EXPECT_THAT(labels(2, false), ElementsAre(true, false));
  EXPECT_THAT(labels(10, false), ElementsAre(true, true));
  EXPECT_THAT(labels(10, true), ElementsAre(true, false));
}

TEST(MinCutTest, KeepsToWhatIsForbidden) {
  MinCut cut;
  const int a = cut.AddNode(MinCut::kForbidden, 100);
  const int b = cut.AddNode(0, 1000);
  cut.AddPairCost(b, a, MinCut::kForbidden);
  EXPECT_THAT(cut.Solve(), ElementsAre(false, false));
}

TEST(MinCutTest, RefusesWhatIsNoCost) {
  MinCut cut;
  ExpectError([&] { cut.AddNode(0, -1); }, ErrorCode::kInvalidArgument,
              StrCat("a cost of -1: expected 0 to ", MinCut::kForbidden));
  cut.AddNode(0, 0);
  ExpectError([&] { cut.AddPairCost(0, 0, MinCut::kForbidden + 1); }, ErrorCode::kInvalidArgument,
              StrCat("a cost of ", MinCut::kForbidden + 1, ": expected 0 to ", MinCut::kForbidden));
}

struct Pair {
  size_t a, b;
  int64_t cost;
};

struct Problem {
  std::vector<std::pair<int64_t, int64_t>> nodes;
  std::vector<Pair> pairs;

  int64_t CostOf(const std::vector<bool>& labels) const {
    int64_t cost = 0;
    for (size_t i = 0; i < nodes.size(); ++i) cost += labels[i] ? nodes[i].first : nodes[i].second;
    for (const Pair& pair : pairs) cost += labels[pair.a] && !labels[pair.b] ? pair.cost : 0;
    return cost;
  }
};

Problem RandomProblem(std::mt19937* random) {
  const auto below = [&](size_t end) { return (*random)() % end; };
  Problem problem;
  const size_t nodes = 1 + below(9);
  // Small numbers, so that there are ties.
  for (size_t i = 0; i < nodes; ++i) {
    problem.nodes.emplace_back(static_cast<int64_t>(below(6)), static_cast<int64_t>(below(6)));
  }
  for (size_t i = below(3 * nodes); i > 0; --i) {
    problem.pairs.push_back({below(nodes), below(nodes), static_cast<int64_t>(below(4))});
  }
  return problem;
}

TEST(MinCutTest, IsTheBestOfAllLabellings) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const Problem problem = RandomProblem(&random);
    MinCut cut;
    for (const auto& [if_true, if_false] : problem.nodes) cut.AddNode(if_true, if_false);
    for (const Pair& pair : problem.pairs) {
      cut.AddPairCost(static_cast<int>(pair.a), static_cast<int>(pair.b), pair.cost);
    }
    int64_t least = std::numeric_limits<int64_t>::max();
    std::ptrdiff_t most_true = 0;
    for (unsigned bits = 0; bits < 1u << problem.nodes.size(); ++bits) {
      std::vector<bool> labels;
      for (size_t i = 0; i < problem.nodes.size(); ++i) labels.push_back((bits >> i & 1) != 0);
      const int64_t cost = problem.CostOf(labels);
      const std::ptrdiff_t trues = std::ranges::count(labels, true);
      if (cost < least) most_true = 0;
      least = std::min(least, cost);
      if (cost == least) most_true = std::max(most_true, trues);
    }
    const std::vector<bool> labels = cut.Solve();
    ASSERT_EQ(problem.CostOf(labels), least) << "round " << round;
    ASSERT_EQ(std::ranges::count(labels, true), most_true) << "round " << round;
  }
}

}  // namespace
}  // namespace skiff
