#include "framework/analysis/collective_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "framework/plan/plan_text.h"
#include "tests/framework/executor/tiny_ops.h"
#include "tests/harness/thread_ranks.h"

namespace skiff {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> OrderOf(
    const std::string& instructions,
    const std::function<void(OpRegistry&)>& add_ops = [](auto&) {}) {
  OpRegistry registry;
  tiny::RegisterTinyOps(registry);
  add_ops(registry);
  return CollectiveOrder(ParsePlan(registry,
                                   "plan cpu reuse=none { value x#0 float32 [4] @feed "
                                   "value y#1 float32 [5, 7] @feed " +
                                       instructions + "}"));
}

TEST(CollectiveOrder, HasALineForEachCollectiveInstruction) {
  EXPECT_THAT(
      OrderOf(R"(
                {Out: [a#2 float32 [5, 7]]} = tiny_exchange(X: [y#1]) {factor = 2.0, op_role = 1}
                {Out: [b#3 float32 [4]]} = tiny_copy(X: [x#0])
                {Out: [c#4 float32 [4]]} = tiny_exchange_copy(X: [b#3]))"),
      ElementsAre("a float32 [rows, 7] = tiny_exchange(y float32 [rows, 7]) {factor = 2.0}",
                  "c float32 [rows] = tiny_exchange_copy(b float32 [rows]) {factor = 1.0}"));
}

// Ranks may have images of other sizes. That isn't another order, and no rank has to wait for
// another when it makes a plan for a new size.
TEST(CollectiveOrder, HasNoDimsOfOpsThatWorkOnTheBatchOfTheRank) {
  const auto add = [](OpRegistry& registry) {
    OpDef def = registry.Get("tiny_exchange");
    def.type = "tiny_batch_exchange";
    def.layout_slots = {"X"};
    registry.Add(std::move(def));
  };
  EXPECT_THAT(OrderOf("{Out: [a#2 float32 [5, 7]]} = tiny_batch_exchange(X: [y#1])", add),
              ElementsAre("a float32 = tiny_batch_exchange(y float32) {factor = 1.0}"));
}

TEST(CollectiveAgreement, PassesEqualOrders) {
  EXPECT_THAT(RunOnThreadRanks(3, {},
                               [](Communicator* communicator) {
                                 CollectiveAgreement agreement(communicator);
                                 agreement.Check({"one", "two"});
                                 agreement.Check({"one", "two", "three"});
                               }),
              Each(IsEmpty()));
}

// Ranks need not make plans at the same time.
TEST(CollectiveAgreement, ComparesAnOrderOnce) {
  EXPECT_THAT(RunOnThreadRanks(2, {.time_limit = 60},
                               [](Communicator* communicator) {
                                 CollectiveAgreement agreement(communicator);
                                 agreement.Check({"one"});
                                 if (communicator->world().rank == 0) agreement.Check({"one"});
                               }),
              Each(IsEmpty()));
}

TEST(CollectiveAgreement, NamesTheFirstDifferenceOnAllRanks) {
  const auto check = [](Communicator* communicator) {
    CollectiveAgreement agreement(communicator);
    std::vector<std::string> order = {"one", "two", "three"};
    if (communicator->world().rank == 2) order[1] = "2";
    agreement.Check(order);
  };
  EXPECT_THAT(RunOnThreadRanks(4, {}, check),
              Each("ranks would run different collective ops: number 1 is \"two\" on rank 0, and "
                   "\"2\" on rank 2"));
}

TEST(CollectiveAgreement, NamesAnInstructionThatOneRankLacks) {
  const auto check = [](Communicator* communicator) {
    CollectiveAgreement agreement(communicator);
    const bool is_first = communicator->world().rank == 0;
    agreement.Check(is_first ? std::vector<std::string>{"one"}
                             : std::vector<std::string>{"one", "two"});
  };
  EXPECT_THAT(RunOnThreadRanks(2, {}, check),
              Each("ranks would run different collective ops: number 1 is missing on rank 0, and "
                   "\"two\" on rank 1"));
}

}  // namespace
}  // namespace skiff
