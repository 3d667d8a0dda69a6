#include "framework/tensor/ragged.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LoDOfLengths, SumsTheLengthsOfEachLevel) {
  EXPECT_THAT(LoDOfLengths({}), IsEmpty());
  EXPECT_EQ(LoDOfLengths({{2, 0, 3}}), (LoD{{0, 2, 2, 5}}));
  EXPECT_EQ(LoDOfLengths({{1, 1}, {2, 0}, {4, 1}}), (LoD{{0, 1, 2}, {0, 2, 2}, {0, 4, 5}}));
}

TEST(LoDOfLengths, IsUndoneByLengthsOf) {
  const LevelLengths lengths = {{0, 3}, {2, 0, 1}, {5, 1, 7}};
  EXPECT_EQ(LengthsOf(LoDOfLengths(lengths)), lengths);
  EXPECT_THAT(LengthsOf({}), IsEmpty());
}

TEST(LoDOfLengths, SaysWhichLevelIsWrong) {
  const auto message = [](const LevelLengths& lengths) {
    return InvalidArgumentText([&] { LoDOfLengths(lengths); });
  };
  EXPECT_EQ(message({{1, 1}, {2, -3}}),
            "LoD level 1: a sequence of length -3: expected at least 0");
  EXPECT_EQ(message({{2, 1}, {1, 1}}),
            "LoD level 0: the lengths sum to 3, expected 2, the sequences of level 1");
  EXPECT_EQ(message({{}}), "LoD level 0: no lengths, expected that of one sequence at least");
}

TEST(WithLengths, ChecksTheRows) {
  const Tensor rows({4, 2}, DType::kFloat32);
  EXPECT_EQ(WithLengths(rows, {{1, 3}}).lod(), (LoD{{0, 1, 4}}));
  EXPECT_TRUE(rows.lod().empty());
  EXPECT_EQ(InvalidArgumentText([&] {
              WithLengths(rows, {{1, 4}});
            }),
            "LoD level 0 ends at 5: expected 4 (rows)");
}

TEST(RaggedTensor, JoinsSequences) {
  const Tensor ids = RaggedTensor<int64_t>({{3, 1}, {}, {7}});
  EXPECT_EQ(ids.shape(), (Shape{3}));
  EXPECT_EQ(ids.dtype(), DType::kInt64);
  EXPECT_THAT(ids.ToVector<int64_t>(), ElementsAre(3, 1, 7));
  EXPECT_EQ(ids.lod(), (LoD{{0, 2, 2, 3}}));
}

TEST(RaggedTensor, HasRowsOfAnyShape) {
  const Tensor rows = RaggedTensor<float>({{1, 2, 3, 4}, {5, 6}}, {2});
  EXPECT_EQ(rows.shape(), (Shape{3, 2}));
  EXPECT_EQ(rows.lod(), (LoD{{0, 2, 3}}));
  EXPECT_EQ(RaggedTensor<double>({{}, {1, 2, 3, 4}}, {2, 1, 2}).shape(), (Shape{1, 2, 1, 2}));
  EXPECT_EQ(RaggedTensor<bool>({{true}, {false, true}}, {1}).shape(), (Shape{3, 1}));
  EXPECT_EQ(RaggedTensor<float>({{}}, {5}).shape(), (Shape{0, 5}));
}

TEST(RaggedTensor, NestsTwoLevels) {
  const Tensor words = NestedRaggedTensor<int64_t>({{{1, 2}, {3}}, {}, {{4, 5, 6}}});
  EXPECT_THAT(words.ToVector<int64_t>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(words.lod(), (LoD{{0, 2, 2, 3}, {0, 2, 3, 6}}));
  EXPECT_EQ(NestedRaggedTensor<float>({{{1, 2}}}, {2}).shape(), (Shape{1, 2}));
}

TEST(RaggedTensor, RefusesWhatHasNoWholeRowsOrNoSequences) {
  EXPECT_EQ(InvalidArgumentText([] {
              RaggedTensor<float>({{1, 2}, {1, 2, 3}}, {2});
            }),
            "sequence 1 has 3 elements, expected rows of 2 each");
  EXPECT_EQ(InvalidArgumentText([] { RaggedTensor<float>({{}}, {0}); }),
            "sequence 0 has 0 elements, expected rows of 0 each");
  EXPECT_EQ(InvalidArgumentText([] { RaggedTensor<float>({}); }),
            "LoD level 0: no lengths, expected that of one sequence at least");
  EXPECT_EQ(InvalidArgumentText([] {
              NestedRaggedTensor<float>({{}, {}});
            }),
            "LoD level 1: no lengths, expected that of one sequence at least");
}

}  // namespace
}  // namespace skiff
