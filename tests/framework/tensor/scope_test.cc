#include "framework/tensor/scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skiff {
namespace {

using ::testing::ElementsAre;

Tensor Pair(float a, float b) { return Tensor::FromValues<float>({2}, {a, b}); }

TEST(Scope, FindsWhatWasSet) {
  Scope scope;
  EXPECT_EQ(scope.Find("w"), nullptr);
  EXPECT_THROW(scope.Get("w"), Error);
  scope.Set("w", Pair(1, 2));
  scope.Set("b", Pair(3, 4));
  EXPECT_THAT(scope.Get("w").ToVector<float>(), ElementsAre(1, 2));
  EXPECT_THAT(scope.Names(), ElementsAre("b", "w"));
}

TEST(Scope, KeepsAddressesOfSlots) {
  Scope scope;
  scope.Set("w", Pair(1, 2));
  const Tensor* slot = scope.Find("w");
  for (const char* name : {"a", "b", "c", "x", "y"}) scope.Set(name, Pair(0, 0));
  scope.Set("w", Pair(3, 4));
  EXPECT_EQ(scope.Find("w"), slot);
  EXPECT_THAT(slot->ToVector<float>(), ElementsAre(3, 4));
}

TEST(Scope, SetSharesAndAssignCopies) {
  Scope scope;
  Tensor mine = Pair(1, 2);
  scope.Set("shared", mine);
  scope.Assign("copied", mine);
  mine.data<float>()[0] = 7;
  EXPECT_THAT(scope.Get("shared").ToVector<float>(), ElementsAre(7, 2));
  EXPECT_THAT(scope.Get("copied").ToVector<float>(), ElementsAre(1, 2));
}

TEST(Scope, AdvancesTheGenerationWhenStorageMoves) {
  Scope scope;
  scope.Set("w", Pair(1, 2));
  const uint64_t generation = scope.generation();
  scope.Assign("w", Pair(5, 6));
  EXPECT_EQ(scope.generation(), generation);
  EXPECT_THAT(scope.Get("w").ToVector<float>(), ElementsAre(5, 6));
  scope.Assign("w", Tensor::FromValues<float>({3}, {1, 2, 3}));
  EXPECT_GT(scope.generation(), generation);
  const uint64_t moved = scope.generation();
  scope.Erase("nothing");
  EXPECT_EQ(scope.generation(), moved);
  scope.Erase("w");
  EXPECT_GT(scope.generation(), moved);
  EXPECT_EQ(scope.Find("w"), nullptr);
}

}  // namespace
}  // namespace skiff
