#include "framework/text/token_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/io/file.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Pair;
using ::testing::StartsWith;

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
              ElementsAre(kUnknownId, 3));
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

class VocabularyFiles : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = JoinPath(directory_.path(), name);
    AtomicWriteFile(path, text);
    return path;
  }
  TokenVocabulary Load() const { return TokenVocabulary::Load(directory_.path(), "side"); }
  void WriteAll(const TokenVocabulary& vocabulary) {
    for (const auto& [name, text] : vocabulary.Files("side")) Write(name, text);
  }

  TempDirectory directory_;
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
  EXPECT_THAT(vocabulary.Encode(" ▁ "), ElementsAre(kUnknownId));
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

}  // namespace
}  // namespace skiff::text
