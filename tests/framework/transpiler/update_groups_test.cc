#include "framework/transpiler/update_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/op/registry.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;

TEST(CutIntoParts, BeginsPartsAtMultiplesInATensor) {
  EXPECT_THAT(CutIntoParts({0, 100}, false, 3), ElementsAre(0, 32, 64, 100));
  // Of 16 elements from the beginning of the second tensor, which is element 7.
  EXPECT_THAT(CutIntoParts({0, 7, 107}, false, 2), ElementsAre(0, 39, 107));
  EXPECT_THAT(CutIntoParts({0, 10, 20}, false, 2), ElementsAre(0, 10, 20));
}

TEST(CutIntoParts, GivesSomeRanksNothingOfFewElements) {
  EXPECT_THAT(CutIntoParts({0, 20}, false, 4), ElementsAre(0, 0, 0, 0, 20));
  EXPECT_THAT(CutIntoParts({0, 0, 0}, false, 2), ElementsAre(0, 0, 0));
  EXPECT_THAT(CutIntoParts({0, 0, 0}, true, 2), ElementsAre(0, 0, 0));
}

TEST(CutIntoParts, BeginsPartsAtTheNearestTensor) {
  EXPECT_THAT(CutIntoParts({0, 60, 100}, true, 2), ElementsAre(0, 60, 100));
  EXPECT_THAT(CutIntoParts({0, 20, 30, 100}, true, 2), ElementsAre(0, 30, 100));
  EXPECT_THAT(CutIntoParts({0, 90, 100}, true, 3), ElementsAre(0, 0, 90, 100));
}

TEST(UpdateOfSome, HasTheirEntriesOfAllLists) {
  Op update("merged_momentum");
  update.SetInput("Param", {"a", "b", "c"}).SetInput("Velocity", {"a_v", "b_v", "c_v"});
  update.SetInput("LearningRate", {"rate"}).SetOutput("ParamOut", {"a", "b", "c"});
  update.SetAttr("regularization_coeff", std::vector<float>{1, 2, 3});
  update.SetAttr("regularization_method", std::vector<std::string>{"l2_decay"});
  update.SetAttr("op_role_var", std::vector<std::string>{"a", "ga", "b", "gb", "c", "gc"});
  const Op some = UpdateOfSome(DefaultOpRegistry().Get(update.type), update, {2, 0});
  EXPECT_THAT(some.Input("Param"), ElementsAre("c", "a"));
  EXPECT_THAT(some.Input("Velocity"), ElementsAre("c_v", "a_v"));
  EXPECT_THAT(some.Input("LearningRate"), ElementsAre("rate"));
  EXPECT_THAT(some.Output("ParamOut"), ElementsAre("c", "a"));
  EXPECT_THAT(some.Attr<std::vector<float>>("regularization_coeff"), ElementsAre(3, 1));
  EXPECT_THAT(some.Attr<std::vector<std::string>>("regularization_method"),
              ElementsAre("l2_decay"));
  EXPECT_THAT(some.Attr<std::vector<std::string>>("op_role_var"),
              ElementsAre("a", "ga", "c", "gc"));
}

}  // namespace
}  // namespace skiff
