#include "models/seq2seq/translation_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "framework/io/file.h"
#include "tests/harness/damage_bytes.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;

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

TEST_F(ParallelTextTest, BeginsBehindAByteOrderMark) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(ReadPairTable(Write("t", mark + "a\tb\n"))[0].source, "a");
  const auto pairs = ReadParallelText(Write("source", mark + "a\n"), Write("target", mark + "b\n"));
  EXPECT_EQ(pairs[0].source, "a");
  EXPECT_EQ(pairs[0].target, "b");
}

TEST_F(ParallelTextTest, SurvivesMutations) {
  std::mt19937 random(1);
  const std::string path = directory_ / "t";
  for (int i = 0; i < 500; ++i) {
    PutBytes(path, DamageBytes("ein Hund\ta dog\tx\n\nzwei\ttwo\r\n", &random));
    try {
      EXPECT_FALSE(ReadPairTable(path).empty());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << error.what();
    }
  }
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

// Returns a date in all ways that GenerateDates writes it.
std::vector<std::string> WaysToWrite(const std::string& iso) {
  std::tm date{};
  EXPECT_NE(strptime(iso.c_str(), "%Y-%m-%d", &date), nullptr) << iso;
  const int day = date.tm_mday;
  const std::string ordinal = StrCat(day, day % 20 == 1   ? "st"
                                          : day % 20 == 2 ? "nd"
                                          : day % 20 == 3 ? "rd"
                                                          : "th");
  std::vector<std::string> ways;
  for (const std::string& format :
       {std::string("%-d %B %Y"), std::string("%B %-d, %Y"), std::string("%-d.%-m.%Y"),
        std::string("%m/%d/%Y"), "%b " + ordinal + " %Y", "the " + ordinal + " of %B, %Y",
        std::string("%A, %B %-d, %Y"), std::string("%a %d %b %Y"), "%Y, %B " + ordinal,
        std::string("%-d-%b-%Y")}) {
    char text[64];
    ways.emplace_back(text, std::strftime(text, sizeof text, format.c_str(), &date));
  }
  return ways;
}

TEST(GenerateDates, WritesDatesInTenWays) {
  const auto pairs = GenerateDates(500, 1);
  std::set<std::string> sources;
  std::set<size_t> ways;
  for (const TextPair& pair : pairs) {
    EXPECT_THAT(pair.target, MatchesRegex("(19|20)[0-9][0-9]-[01][0-9]-[0-2][0-9]"));
    const std::vector<std::string> expected = WaysToWrite(pair.target);
    const auto found = std::ranges::find(expected, pair.source);
    EXPECT_NE(found, expected.end()) << pair.source << " for " << pair.target;
    ways.insert(static_cast<size_t>(found - expected.begin()));
    sources.insert(pair.source);
  }
  EXPECT_THAT(sources, SizeIs(500));
  EXPECT_THAT(ways, SizeIs(10));
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
              ElementsAre(kUnknownToken, 3));
}

TEST(TokensOf, CutsAtAllWhiteSpace) {
  EXPECT_THAT(TokensOf(" a\tb\xE3\x80\x80"
                       "c ",
                       TokenKind::kWord),
              ElementsAre("a", "b", "c"));
  EXPECT_THAT(TokensOf("a ñ", TokenKind::kCharacter), ElementsAre("a", " ", "ñ"));
  EXPECT_THAT(TokensOf("a\rb", TokenKind::kCharacter), ElementsAre("a", " ", "b"));
  EXPECT_THAT(TokensOf("  ", TokenKind::kWord), IsEmpty());
  EXPECT_THAT(TokensOf("ab c", TokenKind::kPiece), ElementsAre("ab", "c"));
}

TEST(TokenVocabulary, LearnsPiecesOfWords) {
  const std::vector<std::string> texts = {"low\tlower", "  low lowest "};
  EXPECT_EQ(TokenVocabulary::Of(texts, TokenKind::kPiece, 14, 1).Text(),
            "bpe\n<s>\n</s>\n<unk>\nlo\nlow\n▁low\nl\no\nw\n▁\ne\nr\ns\nt\n");
}

class VocabularyFiles : public ParallelTextTest {
 protected:
  TokenVocabulary Load() const { return TokenVocabulary::Load(directory_.path(), "side"); }
  void WriteAll(const TokenVocabulary& vocabulary) {
    for (const auto& [name, text] : vocabulary.Files("side")) Write(name, text);
  }
};

TEST_F(VocabularyFiles, AreReadBack) {
  const std::string text = "characters\n<s>\n</s>\n<unk>\na\n \n";
  const std::string path = Write("side_vocabulary.txt", text);
  EXPECT_EQ(Load().Text(), text);
  EXPECT_THAT(Load().Files("x"), ElementsAre(Pair("x_vocabulary.txt", text)));
  const auto refused = [&](const std::string& other) {
    Write("side_vocabulary.txt", other);
    return ErrorText(ErrorCode::kDataLoss, [&] { Load(); });
  };
  EXPECT_THAT(refused("a\nb\n"), HasSubstr(path + ": expected what a token is, then <s>, </s>"));
  EXPECT_THAT(
      refused("pieces\n<s>\n</s>\n<unk>\na\n"),
      HasSubstr(path + ", line 1: tokens \"pieces\": expected one of words, characters, bpe"));
  EXPECT_THAT(refused(text + "a\n"), HasSubstr(path + ": a token is there twice"));
}

TEST_F(VocabularyFiles, MayBeginWithAByteOrderMark) {
  const std::string text = "words\n<s>\n</s>\n<unk>\na\n";
  Write("side_vocabulary.txt", "\xEF\xBB\xBF" + text);
  EXPECT_EQ(Load().Text(), text);
}

TEST_F(VocabularyFiles, OfPiecesAreReadBack) {
  const std::vector<std::string> texts = {"low lower", "lowest low"};
  const auto vocabulary = TokenVocabulary::Of(texts, TokenKind::kPiece, 20, 1);
  EXPECT_THAT(vocabulary.Files("x"),
              ElementsAre(Key("x_pieces.model"), Pair("x_vocabulary.txt", vocabulary.Text())));
  WriteAll(vocabulary);
  const TokenVocabulary found = Load();
  EXPECT_EQ(found.kind(), TokenKind::kPiece);
  EXPECT_EQ(found.Files("x"), vocabulary.Files("x"));
  EXPECT_EQ(found.Encode("lowest slow"), vocabulary.Encode("lowest slow"));
  EXPECT_EQ(found.Decode(found.Encode(" lower\t\tslow\n")), "lower slow");
}

TEST_F(VocabularyFiles, OfPiecesThatDoNotFit) {
  const std::vector<std::string> texts = {"low lower", "lowest low"};
  WriteAll(TokenVocabulary::Of(texts, TokenKind::kPiece, 20, 1));
  const std::string path = JoinPath(directory_.path(), "side_pieces.model");
  Write("side_pieces.model", "lo");
  EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { Load(); }), StartsWith(path + ": "));
  const auto other = TokenVocabulary::Of(texts, TokenKind::kPiece, 19, 1);
  Write("side_pieces.model", other.Files("side").at("side_pieces.model"));
  EXPECT_EQ(ErrorText(ErrorCode::kDataLoss, [&] { Load(); }),
            path + ": its pieces aren't the tokens of " +
                JoinPath(directory_.path(), "side_vocabulary.txt"));
  std::filesystem::remove(path);
  EXPECT_THAT(ErrorText(ErrorCode::kNotFound, [&] { Load(); }), HasSubstr(path));
}

TEST(TokenVocabulary, DecodesWordsOfPiecesWithSingleBlanks) {
  const std::vector<std::string> texts = {"a b"};
  const auto vocabulary = TokenVocabulary::Of(texts, TokenKind::kPiece, 6, 1);
  ASSERT_EQ(vocabulary.Text(), "bpe\n<s>\n</s>\n<unk>\n▁\na\nb\n");
  EXPECT_EQ(vocabulary.Decode(std::vector<int64_t>{3, 3, 4, 5, 3, 3, 2, 4, 3, 1, 4}), "ab <unk>a");
  EXPECT_THAT(
      ErrorText(ErrorCode::kOutOfRange, [&] { vocabulary.Decode(std::vector<int64_t>{6}); }),
      HasSubstr("the id 6: expected one of a vocabulary of 6"));
}

// SentencePiece takes the sign for a blank, but a sentence without tokens could not be trained on.
TEST(TokenVocabulary, ASentenceOfBeginningsOfWordsHasAToken) {
  const std::vector<std::string> texts = {"a b"};
  const auto vocabulary = TokenVocabulary::Of(texts, TokenKind::kPiece, 6, 1);
  EXPECT_THAT(vocabulary.Encode(" ▁ "), ElementsAre(kUnknownToken));
  EXPECT_THAT(vocabulary.Encode(" "), IsEmpty());
}

TEST(TokenVocabulary, RefusesPiecesThatCanNotBeLearned) {
  const std::vector<std::string> texts = {"low lower"};
  EXPECT_EQ(
      InvalidArgumentText([&] { TokenVocabulary::Of(texts, TokenKind::kPiece, 20, 2); }),
      "pieces of words that are there 2 times: expected 1, since their counts decide which ones "
      "are learned");
  EXPECT_THAT(InvalidArgumentText([&] { TokenVocabulary::Of(texts, TokenKind::kPiece, 8, 1); }),
              HasSubstr("a vocabulary of 8: expected at least 9, for the 6 characters"));
  EXPECT_THAT(InvalidArgumentText([&] { TokenVocabulary::Of({}, TokenKind::kPiece, 8, 1); }),
              HasSubstr("there is no word"));
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

TEST(TranslationData, PiecesAreThoseOfTheTrainingPairs) {
  const TempDirectory directory;
  const std::string path = JoinPath(directory.path(), "pairs");
  AtomicWriteFile(path, "low low\tab ab\nlower\tb\nlow xyz\tab\n");
  const TranslationData data({.data = path, .held_back = 0.34, .tokens = "bpe"});
  EXPECT_EQ(data.extent(), "2 to train, 1 to validate, 20 and 10 tokens");
  EXPECT_THAT(data.source().Text(), Not(HasSubstr("x")));
  EXPECT_THAT(data.VocabularyFiles(),
              ElementsAre(Key("source_pieces.model"), Key("source_vocabulary.txt"),
                          Key("target_pieces.model"), Key("target_vocabulary.txt")));
  EXPECT_EQ(TranslationData({.data = path, .held_back = 0.34, .tokens = "bpe"}).VocabularyFiles(),
            data.VocabularyFiles());
}

}  // namespace
}  // namespace skiff::models
