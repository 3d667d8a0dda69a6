#include "models/ernie/ernie_demo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "framework/base/error.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::ElementsAre;

// Ids 5 to 7 are words.
const text::Vocabulary kVocabulary({"[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", "a", "b", "c"});
constexpr char kLine[] = "1 5 6 2 4 2;0 0 0 0 1 1;0 1 2 3 4 5;-1 0 1 -1 0 -1;1";

class ErnieDemoTest : public ::testing::Test {
 protected:
  void ExpectRefused(const std::string& line, const std::string& message) {
    PutBytes(path_, StrCat(kLine, "\n", line, "\n"));
    ExpectError([&] { ReadErnieDemo(path_, kVocabulary); }, ErrorCode::kDataLoss,
                StrCat(path_, ":2", message));
  }

  TempDirectory directory_;
  const std::string path_ = directory_ / "demo.gz";
};

TEST_F(ErnieDemoTest, ReadsInstances) {
  PutBytes(path_, StrCat(kLine, "\n1 7 2;0 0 0;0 1 2;-1 0 -1;0\n"));
  const std::vector<text::Instance> instances = ReadErnieDemo(path_, kVocabulary);
  ASSERT_EQ(instances.size(), 2u);
  EXPECT_THAT(instances[0].tokens.ids, ElementsAre(1, 5, 6, 2, 4, 2));
  EXPECT_THAT(instances[0].sentence_ids, ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(instances[0].tokens.roles,
              ElementsAre(text::TokenRole::kSpecial, text::TokenRole::kWordStart,
                          text::TokenRole::kInsideWord, text::TokenRole::kSpecial,
                          text::TokenRole::kSpecial, text::TokenRole::kSpecial));
  EXPECT_EQ(instances[0].sentence_label, 1);
  EXPECT_EQ(instances[1].sentence_label, 0);
}

TEST_F(ErnieDemoTest, ReadsCompressedFiles) {
  gzFile file = gzopen(path_.c_str(), "wb");
  gzwrite(file, kLine, sizeof(kLine) - 1);
  gzclose(file);
  EXPECT_EQ(ReadErnieDemo(path_, kVocabulary).size(), 1u);
}

TEST_F(ErnieDemoTest, SaysWhatIsWrongWithALine) {
  ExpectRefused("1 2;0 0;0 1;-1 -1", " has 4 fields: expected 5 with semicolons between them");
  ExpectRefused("1 x;0 0;0 1;-1 -1;0", ": token_ids: \"x\" is no number");
  ExpectRefused(";0;0;-1;0", ": token_ids: \"\" is no number");
  ExpectRefused("1 8;0 0;0 1;-1 0;0", ": token id 8: the vocabulary has 0 to 7");
  ExpectRefused("1 2;0 0;0 2;-1 -1;0",
                ": position_id 2 of token 1: expected positions that count from 0");
  ExpectRefused("1 2;0 3;0 1;-1 -1;0", ": sentence_id 3: expected 0 or 1");
  ExpectRefused("1 2;0 0;0 1;-1;0",
                " has 2 token_ids, 2 sentence_ids, 2 position_ids and 1 seg_labels: expected as "
                "many of each");
  ExpectRefused("1 5;0 0;0 1;-1 -1;0",
                ": seg_label -1 of the token a: expected -1 for [CLS] and [SEP], 0 or 1 for all "
                "others");
  ExpectRefused("1 2;0 0;0 1;-1 0;0",
                ": seg_label 0 of the token [SEP]: expected -1 for [CLS] and [SEP], 0 or 1 for all "
                "others");
  ExpectRefused("1 2;0 0;0 1;-1 -1;2", ": next_sentence_label \"2\": expected 0 or 1");
}

TEST_F(ErnieDemoTest, RefusesAnEmptyFile) {
  PutBytes(path_, "");
  ExpectError([&] { ReadErnieDemo(path_, kVocabulary); }, ErrorCode::kDataLoss,
              path_ + " is empty: expected instances, one a line");
}

}  // namespace
}  // namespace skiff::models
