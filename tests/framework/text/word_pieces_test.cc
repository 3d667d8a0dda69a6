#include "framework/text/word_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "framework/text/marks.h"
#include "tests/harness/damage_bytes.h"
#include "tests/harness/error_text.h"

namespace skiff::text {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

using Words = std::vector<std::string>;

// The words of algorithm 1 of Sennrich, Haddow and Birch, each as often as there.
Words LowerAndNewest() {
  Words words;
  const auto add = [&](const std::string& word, size_t count) {
    words.insert(words.end(), count, word);
  };
  add("low", 5);
  add("lower", 2);
  add("newest", 6);
  add("widest", 3);
  return words;
}

Words PiecesOf(const WordPieces& pieces, const std::string& text) {
  const Words all = pieces.Pieces();
  Words found;
  for (const int64_t id : pieces.Encode(text)) found.push_back(all.at(static_cast<size_t>(id)));
  return found;
}

TEST(WordPieces, JoinsTheMostFrequentNeighboursFirst) {
  // Eleven characters with that of the blank, three marks, and three pieces of two characters or
  // more: "es" and "est" are there nine times, "lo" and "low" seven times.
  const auto pieces = WordPieces::Learn(LowerAndNewest(), 17);
  const Words all = pieces.Pieces();
  EXPECT_THAT(all, SizeIs(17));
  EXPECT_THAT(Words(all.begin(), all.begin() + 6),
              ElementsAre("<s>", "</s>", "<unk>", "es", "est", "lo"));
  EXPECT_THAT(PiecesOf(pieces, "lowest"), ElementsAre("▁", "lo", "w", "est"));
}

TEST(WordPieces, KnownWordsAreOnePieceOfALargeVocabulary) {
  const auto pieces = WordPieces::Learn(LowerAndNewest(), 8000);
  EXPECT_LT(pieces.Pieces().size(), 60u);
  EXPECT_THAT(PiecesOf(pieces, "newest low"), ElementsAre("▁newest", "▁low"));
}

TEST(WordPieces, GivesBackATextOfKnownCharacters) {
  const auto pieces = WordPieces::Learn(LowerAndNewest(), 20);
  for (const std::string text : {"lowest", "newer wine sold low", "o", "dd d", ""}) {
    EXPECT_EQ(pieces.Decode(pieces.Encode(text)), text);
  }
  EXPECT_THAT(pieces.Encode(""), IsEmpty());
}

TEST(WordPieces, KeepsCharactersAsTheyAre) {
  // Normalization would make "ﬁ" and "①" of two and of one other character.
  const Words words = {"ﬁn", "①", "ÄÖÜ", "e\xCC\x81", "日本語", "🙂"};
  const auto pieces = WordPieces::Learn(words, 100);
  for (const std::string& word : words) {
    EXPECT_EQ(pieces.Decode(pieces.Encode(word)), word);
    EXPECT_THAT(pieces.Encode(word), Not(Contains(kUnknownId)));
  }
}

TEST(WordPieces, ARunOfUnknownCharactersIsOneToken) {
  const auto pieces = WordPieces::Learn(LowerAndNewest(), 17);
  EXPECT_THAT(PiecesOf(pieces, "loxyzw q"), ElementsAre("▁", "lo", "<unk>", "w", "▁", "<unk>"));
  EXPECT_EQ(pieces.Decode(pieces.Encode("loxyzw q")), "lo<unk>w <unk>");
}

// As in a vocabulary of words, the text of a mark is no mark.
TEST(WordPieces, TextsThatLookLikeMarksHaveNoMarks) {
  const auto pieces =
      WordPieces::Learn(Words{"<s>", "x<s>", "</s>", "<unk>", "a", "▁", "a▁a"}, 100);
  for (const std::string text : {"<s>", "a</s>", "<unk> a<s>a"}) {
    const std::vector<int64_t> ids = pieces.Encode(text);
    EXPECT_THAT(ids, AllOf(Not(IsEmpty()), Each(::testing::Ge(kUnknownId)))) << text;
  }
  EXPECT_THAT(pieces.Encode("▁"), IsEmpty());
  EXPECT_EQ(pieces.Decode(pieces.Encode("a▁a")), "a a");
}

TEST(WordPieces, MarksAreNoText) {
  const auto pieces = WordPieces::Learn(LowerAndNewest(), 17);
  const int64_t es = 3;
  EXPECT_EQ(pieces.Decode(std::vector<int64_t>{kBeginId, es, kUnknownId, es, kEndId}), "es<unk>es");
}

TEST(WordPieces, EqualWordsGiveEqualPieces) {
  EXPECT_EQ(WordPieces::Learn(LowerAndNewest(), 30).Model(),
            WordPieces::Learn(LowerAndNewest(), 30).Model());
}

TEST(WordPieces, PrintsNothing) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const auto pieces = WordPieces::Learn(LowerAndNewest(), 8000);
  WordPieces::Parse(pieces.Model(), "file").Encode("lowest");
  ErrorText(ErrorCode::kDataLoss, [] { WordPieces::Parse("?", "file"); });
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(WordPieces, LearnsFromTinyTexts) {
  EXPECT_THAT(WordPieces::Learn(Words{"a"}, 5).Pieces(),
              ElementsAre("<s>", "</s>", "<unk>", "a", "▁"));
  EXPECT_THAT(WordPieces::Learn(Words{"a"}, 100).Pieces(), Contains("▁a"));
}

TEST(WordPieces, LeavesOutVeryLongWords) {
  const Words words = {std::string(4192, 'a'), std::string(4193, 'b'), std::string(70000, 'c'),
                       "d"};
  const auto pieces = WordPieces::Learn(words, 100);
  EXPECT_THAT(PiecesOf(pieces, "bd"), ElementsAre("▁", "<unk>", "d"));
  EXPECT_THAT(pieces.Pieces(), Contains("aa"));
  EXPECT_EQ(pieces.Decode(pieces.Encode(words[0])), words[0]);
  EXPECT_EQ(pieces.Decode(pieces.Encode(words[2])), "<unk>");
}

TEST(WordPieces, RefusesWhatTheCharactersDoNotFitIn) {
  EXPECT_EQ(
      InvalidArgumentText([] { WordPieces::Learn(LowerAndNewest(), 13); }),
      "pieces of words: a vocabulary of 13: expected at least 14, for the 11 characters of the "
      "texts and 3 marks");
  EXPECT_THAT(WordPieces::Learn(LowerAndNewest(), 14).Pieces(), SizeIs(14));
  for (const int64_t size : {int64_t{-1}, int64_t{0}, int64_t{3}}) {
    EXPECT_THAT(InvalidArgumentText([&] { WordPieces::Learn(LowerAndNewest(), size); }),
                HasSubstr("expected at least 14"));
  }
  EXPECT_THAT(InvalidArgumentText([] { WordPieces::Learn(LowerAndNewest(), int64_t{1} << 40); }),
              StartsWith("pieces of words: SentencePiece: "));
}

TEST(WordPieces, RefusesToLearnFromNothing) {
  for (const Words& words : {Words{}, Words{std::string(5000, 'a')}}) {
    EXPECT_EQ(InvalidArgumentText([&] { WordPieces::Learn(words, 100); }),
              "pieces of words: there is no word of at most 4192 bytes to learn them from");
  }
}

TEST(WordPieces, ReadsItsModelBack) {
  const auto pieces = WordPieces::Learn(LowerAndNewest(), 20);
  const auto found = WordPieces::Parse(pieces.Model(), "file");
  EXPECT_EQ(found.Pieces(), pieces.Pieces());
  EXPECT_EQ(found.Model(), pieces.Model());
  EXPECT_EQ(found.Encode("lowest xo"), pieces.Encode("lowest xo"));
}

TEST(WordPieces, RefusesWhatIsNoModel) {
  const std::string model = WordPieces::Learn(LowerAndNewest(), 20).Model();
  for (const std::string& bytes : {std::string(), std::string("garbage"), std::string(100, '\0'),
                                   model.substr(0, model.size() / 2), model + "x"}) {
    EXPECT_THAT(ErrorText(ErrorCode::kDataLoss, [&] { WordPieces::Parse(bytes, "some.model"); }),
                AllOf(StartsWith("some.model: "), HasSubstr("SentencePiece: ")));
  }
}

// A model file is input: SentencePiece would follow a map of characters to any address.
TEST(WordPieces, RefuseModelsThatTheyDoNotMake) {
  const std::string model = WordPieces::Learn(LowerAndNewest(), 17).Model();
  // Appended messages of protobuf are parts of the one before: field, length, contents.
  const auto refused = [&](std::string_view part) {
    return ErrorText(ErrorCode::kDataLoss,
                     [&] { WordPieces::Parse(model + std::string(part), "m"); });
  };
  EXPECT_EQ(refused("\x1a\x04\x12\x02xx"),
            "m: it maps characters to others, expected a model that leaves them as they are");
  EXPECT_THAT(refused("\x2a\x04\x12\x02xx"), HasSubstr("it maps characters to others"));
  EXPECT_EQ(refused("\x12\x02\x18\x01"),
            "m: a model of the type 1, expected 2 (byte-pair encoding)");
  EXPECT_EQ(refused("\x0a\x05\x0a\x01x\x18\x06"),
            "m: a piece of the type 6, expected 1 to 3 (normal, unknown or control)");
  EXPECT_THAT(refused(std::string_view("\x0a\x05\x0a\x01x\x18\x00", 7)),
              HasSubstr("a piece of the type 0, expected 1 to 3"));
  // The trainer's spec has the type as field 3, before the size, which is field 4. Without a type,
  // it would be a unigram model.
  const size_t type = model.find("\x18\x02\x20\x11");
  ASSERT_NE(type, std::string::npos);
  std::string untyped = model;
  untyped[type] = '\x20';
  EXPECT_EQ(
      ErrorText(ErrorCode::kDataLoss, [&] { WordPieces::Parse(untyped, "m"); }),
      "m: a unigram model of SentencePiece: it names no type, expected 2 (byte-pair encoding)");
  EXPECT_THAT(refused("\x0a\x7f"), StartsWith("m: no model of SentencePiece: "));
}

TEST(WordPieces, SurviveMutations) {
  const std::string intact = WordPieces::Learn(LowerAndNewest(), 17).Model();
  std::mt19937 random(1);
  int parsed = 0;
  for (int i = 0; i < 10'000; ++i) {
    try {
      const WordPieces pieces = WordPieces::Parse(DamageBytes(intact, &random), "m");
      ++parsed;
      pieces.Decode(pieces.Encode("newest lower wide \xff"));
    } catch (const Error&) {
    }
  }
  EXPECT_GT(parsed, 300);
}

}  // namespace
}  // namespace skiff::text
