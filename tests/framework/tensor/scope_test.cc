#include "framework/tensor/scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/api/error.h"
#include "framework/tensor/pending_writes.h"

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

TEST(Scope, RefusesBoolsThatAreNeitherTrueNorFalse) {
  Scope scope;
  scope.Set("m", Tensor::FromValues<bool>({2}, {true, false}));
  const Tensor bad = Tensor::FromValues<bool>({2}, {true, true});
  static_cast<uint8_t*>(Tensor(bad).raw_data())[1] = 2;
  EXPECT_THROW(scope.Set("m", bad), Error);
  EXPECT_THROW(scope.Assign("m", bad), Error);
  EXPECT_THROW(scope.Assign("new", bad), Error);
  EXPECT_THAT(scope.Get("m").ToVector<bool>(), ElementsAre(true, false));
  EXPECT_THAT(scope.Names(), ElementsAre("m"));
  // What is reserved has no values yet.
  scope.Reserve("reserved", bad);
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

// Plans know the LoDs of variables, so that another one makes them stale.
TEST(Scope, AssignTakesTheLoDAlong) {
  Scope scope;
  Tensor rows = Tensor::FromValues<float>({4}, {1, 2, 3, 4});
  rows.set_lod({{0, 2, 4}});
  scope.Assign("x", rows);
  const uint64_t generation = scope.generation();
  rows.set_lod({{0, 1, 4}});
  scope.Assign("x", rows);
  EXPECT_GT(scope.generation(), generation);
  EXPECT_EQ(scope.Get("x").lod(), (LoD{{0, 1, 4}}));
}

TEST(Scope, AssignFillsASlotWithoutData) {
  Scope scope;
  scope.Set("x", Tensor());
  scope.Assign("x", Tensor::FromValues<float>({}, {3}));
  EXPECT_EQ(scope.Get("x").Item<float>(), 3);
}

TEST(Scope, ReservedSlotsAreSeenWhenTheyAreRevealed) {
  Scope scope;
  scope.Reserve("w", Pair(1, 2));
  EXPECT_EQ(scope.Find("w"), nullptr);
  EXPECT_TRUE(scope.Names().empty());
  scope.FindMutable("w")->data<float>()[0] = 5;
  scope.Reveal("w");
  EXPECT_THAT(scope.Get("w").ToVector<float>(), ElementsAre(5, 2));
  EXPECT_THROW(scope.Reveal("nothing"), Error);
}

TEST(Scope, ReservingAnotherNameMovesNothing) {
  Scope scope;
  scope.Set("w", Pair(1, 2));
  const uint64_t generation = scope.generation();
  scope.Reserve("v", Pair(1, 2));
  EXPECT_EQ(scope.generation(), generation);
  EXPECT_EQ(scope.size(), 2u);
  scope.Reserve("v", Pair(3, 4));
  EXPECT_GT(scope.generation(), generation);
}

TEST(Scope, ErasingAReservedSlotConcernsNobodyElse) {
  Scope scope;
  scope.Reserve("w", Pair(1, 2));
  const uint64_t generation = scope.generation();
  scope.Erase("w");
  EXPECT_EQ(scope.FindMutable("w"), nullptr);
  EXPECT_EQ(scope.generation(), generation);
  scope.Set("w", Pair(1, 2));
  scope.Erase("w");
  EXPECT_EQ(scope.generation(), generation + 2);
}

class CountedWaits final : public PendingWrites {
 public:
  void Wait() override { ++count; }
  int count = 0;
};

TEST(Scope, WhoeverLooksUpASlotWaitsForItsPendingWrites) {
  CountedWaits waits;
  Scope scope;
  scope.Set("w", Pair(1, 2));
  scope.Set("b", Pair(3, 4));
  scope.SetPending("w", &waits);
  scope.Get("b");
  scope.Names();
  EXPECT_EQ(waits.count, 0);
  scope.Get("w");
  EXPECT_EQ(waits.count, 1);
  scope.Find("w");
  EXPECT_EQ(waits.count, 2);
  scope.FindMutable("w");
  EXPECT_EQ(waits.count, 3);
  scope.Assign("w", Pair(5, 6));
  EXPECT_GT(waits.count, 3);
  const int before = waits.count;
  scope.Set("w", Pair(5, 6));
  EXPECT_EQ(waits.count, before + 1);
  scope.Get("w");
  EXPECT_EQ(waits.count, before + 1) << "it is another tensor";
  scope.SetPending("w", &waits);
  scope.Erase("w");
  EXPECT_EQ(waits.count, before + 2);
  EXPECT_THROW(scope.SetPending("w", &waits), Error);
}

TEST(Scope, WhoeverLooksUpAnySlotWaitsForWork) {
  CountedWaits work;
  CountedWaits other;
  Scope scope;
  scope.Set("w", Pair(1, 2));
  scope.SetWork(&work);
  scope.SetWork(&work);
  scope.Names();
  EXPECT_EQ(work.count, 0);
  scope.Get("w");
  EXPECT_EQ(work.count, 1);
  scope.Set("w", Pair(5, 6));
  EXPECT_EQ(work.count, 2);
  scope.SetWork(&other);
  EXPECT_EQ(work.count, 3) << "the other work may need what this one writes";
  scope.Erase("w");
  EXPECT_EQ(other.count, 1);
  scope.ForgetWork(&work);
  scope.Set("w", Pair(1, 2));
  EXPECT_EQ(other.count, 2);
  scope.ForgetWork(&other);
  scope.Get("w");
  EXPECT_EQ(other.count, 2);
}

}  // namespace
}  // namespace skiff
