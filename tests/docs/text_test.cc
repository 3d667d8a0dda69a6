// Runs the code of docs/text.md as it is there. BUILD takes it out of the page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "skiff/data.h"
#include "skiff/skiff.h"

namespace skiff {
namespace {

TEST(TextPage, ReadsMaskedDocuments) {
  const std::vector<text::Document> documents(
      16, {"A cat sat on the mat.", "A dog lay on the rug.", "Both of them slept."});
#include "tests/docs/pretraining.inc"
  training::Batch batch;
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_EQ(batch.feed(text::kTokenIds).shape(), Shape({16, 64}));
  EXPECT_THAT(batch.feed(text::kTokenIds).ToVector<int64_t>(),
              testing::Contains(vocabulary.mask()));
}

TEST(TextPage, ReadsLabelledTexts) {
  const std::vector<text::LabelledText> texts = {{.label = 0, .text = "a bad film"},
                                                 {.label = 1, .text = "a good film"}};
#include "tests/docs/classification.inc"
  training::Batch batch;
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_THAT(batch.feed(text::kLabel).ToVector<int64_t>(), testing::UnorderedElementsAre(0, 1));
}

TEST(TextPage, ReadsPairsOfTexts) {
  const std::vector<text::TextPair> pairs = {{.source = "ein Hund", .target = "a dog"},
                                             {.source = "eine Katze", .target = "a cat"}};
#include "tests/docs/translation.inc"
  training::Batch batch;
  ASSERT_TRUE(reader.Next(&batch));
  EXPECT_EQ(batch.samples, 2);
  const std::vector<int64_t> first = batch.feed(text::PairReader::kLabel).ToVector<int64_t>();
  EXPECT_THAT(target.Decode(first), testing::AnyOf("a dog", "a cat"));
}

}  // namespace
}  // namespace skiff
