#include "framework/tensor/replaced_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "framework/base/error.h"
#include "memory/places.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;

Tensor Pair(float a, float b) { return Tensor::FromValues<float>({2}, {a, b}); }

ErrorCode CodeOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::kIo;
}

class ReplacedValuesTest : public testing::Test {
 protected:
  ReplacedValuesTest() {
    scope_.Set("w", Pair(1, 2));
    scope_.Set("b", Pair(3, 4));
  }
  std::vector<float> W() const { return scope_.Get("w").ToVector<float>(); }
  std::function<void()> Write(float a, float b) {
    return [=, this] { scope_.Assign("w", Pair(a, b)); };
  }

  Scope scope_;
};

TEST_F(ReplacedValuesTest, HoldsOtherValuesWhileItLives) {
  {
    const ReplacedValues replaced(&scope_, {"w"}, Write(5, 6));
    EXPECT_THAT(W(), ElementsAre(5, 6));
    EXPECT_TRUE(scope_.has_replaced_values());
    EXPECT_TRUE(replaced.Contains("w"));
    EXPECT_FALSE(replaced.Contains("b"));
  }
  EXPECT_THAT(W(), ElementsAre(1, 2));
  EXPECT_FALSE(scope_.has_replaced_values());
}

TEST_F(ReplacedValuesTest, RestoresOnce) {
  ReplacedValues replaced(&scope_, {"w"}, Write(5, 6));
  replaced.Restore();
  EXPECT_THAT(W(), ElementsAre(1, 2));
  scope_.Assign("w", Pair(7, 8));
  replaced.Restore();
  EXPECT_THAT(W(), ElementsAre(7, 8));
}

// Plans stay valid, and what they derive from the values is made anew.
TEST_F(ReplacedValuesTest, KeepsTheStorageAndAdvancesTheVersion) {
  const void* storage = scope_.Get("w").raw_data();
  const uint64_t generation = scope_.generation();
  const uint64_t* version = scope_.Version("w");
  const uint64_t before = *version;
  {
    const ReplacedValues replaced(&scope_, {"w"}, Write(5, 6));
    EXPECT_GT(*version, before);
  }
  EXPECT_GT(*version, before + 1);
  EXPECT_EQ(scope_.Get("w").raw_data(), storage);
  EXPECT_EQ(scope_.generation(), generation);
}

TEST_F(ReplacedValuesTest, IsRefusedWhileValuesAreReplaced) {
  std::optional<ReplacedValues> first;
  first.emplace(&scope_, std::vector<std::string>{"w"}, Write(5, 6));
  EXPECT_EQ(CodeOf([&] { ReplacedValues(&scope_, {"b"}, [] {}); }), ErrorCode::kFailedPrecondition);
  EXPECT_THAT(W(), ElementsAre(5, 6));
  first.reset();
  EXPECT_THAT(W(), ElementsAre(1, 2));
  EXPECT_NO_THROW(ReplacedValues(&scope_, {"b"}, [] {}));
}

TEST_F(ReplacedValuesTest, AFailedWriteChangesNothing) {
  const auto fail = [&] {
    scope_.Assign("w", Pair(5, 6));
    Throw(ErrorCode::kOutOfRange, "half-way");
  };
  EXPECT_EQ(CodeOf([&] { ReplacedValues(&scope_, {"b", "w"}, fail); }), ErrorCode::kOutOfRange);
  EXPECT_THAT(W(), ElementsAre(1, 2));
  EXPECT_FALSE(scope_.has_replaced_values());
  EXPECT_EQ(CodeOf([&] { ReplacedValues(&scope_, {"none"}, [] {}); }), ErrorCode::kNotFound);
  EXPECT_FALSE(scope_.has_replaced_values());
}

TEST_F(ReplacedValuesTest, BringsBackWhatWasErasedOrMoved) {
  {
    const ReplacedValues replaced(&scope_, {"b", "w"}, [] {});
    scope_.Erase("b");
    scope_.Set("w", Tensor::FromValues<float>({1}, {9}));
  }
  EXPECT_THAT(W(), ElementsAre(1, 2));
  EXPECT_THAT(scope_.Get("b").ToVector<float>(), ElementsAre(3, 4));
}

TEST_F(ReplacedValuesTest, MayBeGivenANameTwice) {
  {
    const ReplacedValues replaced(&scope_, {"w", "b", "w"}, Write(5, 6));
    EXPECT_TRUE(replaced.Contains("w"));
    EXPECT_TRUE(replaced.Contains("b"));
  }
  EXPECT_THAT(W(), ElementsAre(1, 2));
}

// Of a variable "a" that has moved, no copy can be made; the rest needs no memory.
class ReplacedValuesWithoutMemoryTest : public ReplacedValuesTest {
 protected:
  ReplacedValuesWithoutMemoryTest() { scope_.Set("a", own_a_); }
  ~ReplacedValuesWithoutMemoryTest() override { SetLimit(0); }

  void MoveAndForbidMemory() {
    scope_.Set("a", Pair(7, 8));
    SetLimit(1);
  }
  static void SetLimit(int64_t bytes) { AllocatorOf(Place::Cpu()).SetLimit(bytes); }

  // Larger than any free part of what the allocator holds; kept, so that it doesn't become one.
  const Tensor own_a_{Shape({int64_t{12} << 20}), DType::kFloat32};
};

TEST_F(ReplacedValuesWithoutMemoryTest, WhatCannotBePutBackIsErased) {
  {
    const ReplacedValues replaced(&scope_, {"a", "w"}, Write(5, 6));
    MoveAndForbidMemory();
  }
  EXPECT_FALSE(scope_.has_replaced_values());
  EXPECT_EQ(scope_.Find("a"), nullptr);
  EXPECT_THAT(W(), ElementsAre(1, 2));
}

TEST_F(ReplacedValuesWithoutMemoryTest, ARestoreThatFailsMayBeRepeated) {
  ReplacedValues replaced(&scope_, {"a", "b", "w"}, Write(5, 6));
  MoveAndForbidMemory();
  EXPECT_EQ(CodeOf([&] { replaced.Restore(); }), ErrorCode::kResourceExhausted);
  EXPECT_TRUE(scope_.has_replaced_values());
  EXPECT_TRUE(replaced.Contains("a"));
  SetLimit(0);
  replaced.Restore();
  EXPECT_FALSE(scope_.has_replaced_values());
  EXPECT_EQ(scope_.Get("a").shape(), own_a_.shape());
  EXPECT_THAT(W(), ElementsAre(1, 2));
}

TEST_F(ReplacedValuesTest, ACheckNamesWhatCannotBeDone) {
  EXPECT_NO_THROW(ReplacedValues::CheckNotReplaced(scope_, "w", "save"));
  const ReplacedValues replaced(&scope_, {"w"}, [] {});
  EXPECT_NO_THROW(ReplacedValues::CheckNotReplaced(scope_, "b", "save"));
  try {
    ReplacedValues::CheckNotReplaced(scope_, "w", "save");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_STREQ(error.what(),
                 "save: \"w\" holds a replaced value, an average for example; restore its own "
                 "first");
  }
}

}  // namespace
}  // namespace skiff
