#include "framework/text/pair_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/error_text.h"

namespace skiff::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PairReader, FeedsPairsWithTheirMarks) {
  const TokenPairs pairs{.sources = {{5, 6}, {7}}, .targets = {{3}, {4, 5}}};
  PairReader reader(&pairs, {});
  training::Batch batch;
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_EQ(batch.samples, 2);
  EXPECT_THAT(batch.feed(PairReader::kSource).ToVector<int64_t>(), ElementsAre(5, 6, 7));
  EXPECT_EQ(batch.feed(PairReader::kSource).lod(), (LoD{{0, 2, 3}}));
  EXPECT_THAT(batch.feed(PairReader::kGiven).ToVector<int64_t>(), ElementsAre(0, 3, 0, 4, 5));
  EXPECT_EQ(batch.feed(PairReader::kGiven).lod(), (LoD{{0, 2, 5}}));
  EXPECT_THAT(batch.feed(PairReader::kLabel).ToVector<int64_t>(), ElementsAre(3, 1, 4, 5, 1));
  EXPECT_FALSE(reader.Next(&batch));
}

TEST(PairReader, RefusesWhatIsNoPair) {
  const TokenPairs one_sided{.sources = {{5}, {6}}, .targets = {{3}}};
  EXPECT_THAT(InvalidArgumentText([&] { PairReader(&one_sided, {}); }),
              HasSubstr("2 sources and 1 targets"));
  const TokenPairs empty{.sources = {{5}, {}}, .targets = {{3}, {4}}};
  EXPECT_THAT(InvalidArgumentText([&] { PairReader(&empty, {}); }),
              HasSubstr("pair 1 has 0 and 1 tokens"));
}

}  // namespace
}  // namespace skiff::text
