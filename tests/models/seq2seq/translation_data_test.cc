#include "models/seq2seq/translation_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "framework/io/file.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

class ParallelTextTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = JoinPath(directory_.path(), name);
    AtomicWriteFile(path, text);
    return path;
  }

  TempDirectory directory_;
};

TEST_F(ParallelTextTest, ReadsTwoFilesLineByLine) {
  const auto pairs = ReadParallelText(Write("a", "ein Hund\n\nzwei\n"), Write("b", "a dog\n\ntwo"));
  ASSERT_THAT(pairs, SizeIs(2));
  EXPECT_EQ(pairs[0].source, "ein Hund");
  EXPECT_EQ(pairs[1].target, "two");
}

TEST_F(ParallelTextTest, ReadsATable) {
  const auto pairs = ReadPairTable(Write("t", "a\tb\tignored\nc\td\n"));
  ASSERT_THAT(pairs, SizeIs(2));
  EXPECT_EQ(pairs[0].target, "b");
}

TEST_F(ParallelTextTest, LeavesOutBlankLines) {
  EXPECT_THAT(ReadPairTable(Write("t", "\na\tb\n \t \n  \nc\td\r\n")), SizeIs(2));
  EXPECT_THAT(ReadParallelText(Write("a", "a\n \nb\n"), Write("b", "c\n\nd\n")), SizeIs(2));
}

TEST_F(ParallelTextTest, NamesWhatDoesNotFit) {
  const std::string two = Write("two", "a\nb\n");
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { ReadParallelText(two, Write("one", "a\n")); }),
              MatchesRegex(".*two has 2 lines and .*one has 1: expected as many"));
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { ReadParallelText(two, Write("x", "a\n\n")); }),
              HasSubstr("line 2: no target for the source \"b\""));
  EXPECT_THAT(
      ErrorText(ErrorCode::kDataLoss, [&] { ReadParallelText(Write("y", "\xC2\xA0\nc"), two); }),
      HasSubstr("line 1: no source for the target \"a\""));
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { ReadParallelText(two, Write("nothing", "")); }),
              HasSubstr("two has 2 lines and "));
  EXPECT_THAT(ErrorText(ErrorCode::kNotFound, [&] { ReadParallelText(two, two + "no"); }),
              HasSubstr("twono"));
  EXPECT_THAT(
      ErrorText(ErrorCode::kDataLoss, [&] { ReadPairTable(Write("side", "a\tb\n \tc\n")); }),
      HasSubstr("side, line 2: no source for the target \"c\""));
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { ReadPairTable(two); }),
              HasSubstr("line 1: no tab in \"a\""));
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { ReadPairTable(Write("empty", "\n")); }),
              HasSubstr("there is no sentence"));
}

TEST(GenerateDates, WritesDatesInManyWays) {
  const auto pairs = GenerateDates(500, 1);
  std::set<std::string> sources;
  for (const TextPair& pair : pairs) {
    EXPECT_THAT(pair.target, MatchesRegex("(19|20)[0-9][0-9]-[01][0-9]-[0-3][0-9]"));
    EXPECT_THAT(pair.source, HasSubstr(pair.target.substr(0, 4)));
    sources.insert(pair.source);
  }
  EXPECT_THAT(sources, SizeIs(500));
  EXPECT_EQ(GenerateDates(500, 1)[7].source, pairs[7].source);
  EXPECT_NE(GenerateDates(500, 2)[7].source, pairs[7].source);
}

TEST(TokenVocabulary, HasTheMostFrequentTokensFirst) {
  const std::vector<std::string> texts = {"b a b", "c b a", "d"};
  const auto vocabulary = TokenVocabulary::Of(texts, TokenKind::kWord, 5, 1);
  EXPECT_EQ(vocabulary.Text(), "words\n<s>\n</s>\n<unk>\nb\na\n");
  EXPECT_THAT(vocabulary.Encode(" a  c b <s>"), ElementsAre(4, 2, 3, 2));
  EXPECT_EQ(vocabulary.Decode(std::vector<int64_t>{3, 4, 1, 3}), "b a");
  EXPECT_EQ(TokenVocabulary::Of(texts, TokenKind::kWord, 9, 2).size(), 5);
}

TEST(TokenVocabulary, CutsTextsIntoCharacters) {
  const std::vector<std::string> texts = {"añ a"};
  const auto vocabulary = TokenVocabulary::Of(texts, TokenKind::kCharacter, 9, 1);
  EXPECT_EQ(vocabulary.size(), 6);
  EXPECT_EQ(vocabulary.Decode(vocabulary.Encode("ña a")), "ña a");
}

// Each malformed sequence is one character, U+FFFD.
TEST(TokenVocabulary, TakesTextsThatAreNotUtf8) {
  const std::vector<std::string> texts = {"a\xFF \xC3("};
  EXPECT_EQ(TokenVocabulary::Of(texts, TokenKind::kWord, 9, 1).Text(),
            "words\n<s>\n</s>\n<unk>\na\xEF\xBF\xBD\n\xEF\xBF\xBD(\n");
  const auto vocabulary =
      TokenVocabulary::Of(std::vector<std::string>{"a"}, TokenKind::kCharacter, 9, 1);
  EXPECT_THAT(vocabulary.Encode("\xFE"
                                "a"),
              ElementsAre(TokenVocabulary::kUnknown, 3));
}

TEST(TokensOf, CutsAtAllWhiteSpace) {
  EXPECT_THAT(TokensOf(" a\tb\xE3\x80\x80"
                       "c ",
                       TokenKind::kWord),
              ElementsAre("a", "b", "c"));
  EXPECT_THAT(TokensOf("a ñ", TokenKind::kCharacter), ElementsAre("a", " ", "ñ"));
  EXPECT_THAT(TokensOf("  ", TokenKind::kWord), IsEmpty());
}

TEST(TokenVocabulary, ReadsItsTextBack) {
  const std::string text = "characters\n<s>\n</s>\n<unk>\na\n \n";
  EXPECT_EQ(TokenVocabulary::Parse(text, "file").Text(), text);
  const auto refused = [](const std::string& other) {
    return ErrorText(ErrorCode::kDataLoss, [&] { TokenVocabulary::Parse(other, "file"); });
  };
  EXPECT_THAT(refused("a\nb\n"), HasSubstr("file: expected what a token is, then <s>, </s>"));
  EXPECT_THAT(refused("pieces\n<s>\n</s>\n<unk>\na\n"), HasSubstr("tokens \"pieces\""));
  EXPECT_THAT(refused(text + "a\n"), HasSubstr("file: a token is there twice"));
}

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

TEST(TranslationData, LeavesOutWhatIsTooLong) {
  const TempDirectory directory;
  const std::string path = JoinPath(directory.path(), "pairs");
  AtomicWriteFile(path, "ab\tba\nabcdef\tx\nc\tc\nd\td\n");
  const TranslationData data({.data = path, .held_back = 0.25, .longest = 3});
  EXPECT_EQ(data.extent(), "2 to train, 1 to validate (1 are too long), 9 and 7 tokens");
  AtomicWriteFile(path, StrCat(std::string(1 << 20, 'a'), "\tb\nc\td\n"));
  EXPECT_THAT(InvalidArgumentText([&] { TranslationData({.data = path, .held_back = 0.5}); }),
              HasSubstr("all pairs to train or to validate on have more than 100 tokens"));
}

}  // namespace
}  // namespace skiff::models
