#include "framework/text/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "framework/base/error.h"
#include "tests/harness/temp_directory.h"

namespace skiff::text {
namespace {

using ::testing::ElementsAre;

TEST(SplitSentences, CutsAfterEndMarks) {
  EXPECT_THAT(SplitSentences("It rains. Does it? It does! So"),
              ElementsAre("It rains.", "Does it?", "It does!", "So"));
  EXPECT_THAT(SplitSentences("  he left .  she stayed . "),
              ElementsAre("he left .", "she stayed ."));
  EXPECT_THAT(SplitSentences("你好。世界！再见"), ElementsAre("你好。", "世界！", "再见"));
}

TEST(SplitSentences, KeepsMarksThatEndNothing) {
  EXPECT_THAT(SplitSentences("version 3.14 of a.b.c is out"),
              ElementsAre("version 3.14 of a.b.c is out"));
  EXPECT_THAT(SplitSentences("Well . . . what ? ! Nothing..."),
              ElementsAre("Well . . .", "what ? !", "Nothing..."));
  EXPECT_THAT(SplitSentences(" \t "), ElementsAre());
}

class DocumentFileTest : public ::testing::Test {
 protected:
  TempDirectory directory_;
  const std::string path_ = directory_ / "corpus";
};

TEST_F(DocumentFileTest, ReadsASentenceALineAndEmptyLinesBetweenDocuments) {
  PutBytes(path_, "\nOne.\nTwo.\r\n \n\nThree.");
  EXPECT_THAT(ReadDocuments(path_),
              ElementsAre(ElementsAre("One.", "Two."), ElementsAre("Three.")));
}

TEST_F(DocumentFileTest, ReadsCompressedFiles) {
  const std::string text = "1\tname\tOne. Two.\n0\tname\t\n0\tname\tThree.\n";
  gzFile file = gzopen(path_.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  EXPECT_THAT(ReadDocumentTable(path_),
              ElementsAre(ElementsAre("One.", "Two."), ElementsAre("Three.")));
  // Cut in the middle of the stream.
  const std::string packed = BytesOf(path_);
  PutBytes(path_, packed.substr(0, packed.size() - 6));
  EXPECT_EQ(ErrorOf([&] { ReadDocumentTable(path_); }).code(), ErrorCode::kDataLoss);
}

TEST_F(DocumentFileTest, RefusesFilesWithoutSentences) {
  PutBytes(path_, "\n\n");
  ExpectError([&] { ReadDocuments(path_); }, ErrorCode::kDataLoss,
              path_ +
                  " holds no sentences: expected one a line, and empty lines between "
                  "documents");
  ExpectError([&] { ReadDocumentTable(path_); }, ErrorCode::kDataLoss,
              path_ + " holds no text in its last column");
  EXPECT_EQ(ErrorOf([&] { ReadDocuments(path_ + "?"); }).code(), ErrorCode::kNotFound);
}

TEST(TokenizeDocuments, LeavesOutWhatHasNoTokens) {
  const Vocabulary vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##b"});
  const auto documents = Tokenize(Tokenizer(&vocabulary), {{"a b", " "}, {"\xff"}, {"b"}});
  ASSERT_EQ(documents.size(), 2u);
  ASSERT_EQ(documents[0].sentences.size(), 1u);
  EXPECT_THAT(documents[0].sentences[0].ids, ElementsAre(5, 6));
  EXPECT_THAT(documents[1].sentences[0].ids, ElementsAre(6));
}

TEST(TokenizeDocuments, CutsLongSentencesBetweenWords) {
  const Vocabulary vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##b"});
  const auto cut = [&](const std::string& sentence, int64_t longest) {
    std::vector<std::vector<TokenId>> parts;
    const auto documents = Tokenize(Tokenizer(&vocabulary), {{sentence}}, longest);
    for (const TokenSequence& part : documents[0].sentences) {
      parts.push_back(part.ids);
    }
    return parts;
  };
  EXPECT_THAT(cut("a a abb a", 4), ElementsAre(ElementsAre(5, 5), ElementsAre(5, 7, 7, 5)));
  EXPECT_THAT(cut("a a abb a", 6), ElementsAre(ElementsAre(5, 5, 5, 7, 7, 5)));
  // A word that is longer than all that fits is cut where it has to be.
  EXPECT_THAT(cut("abbb a", 2), ElementsAre(ElementsAre(5, 7), ElementsAre(7, 7), ElementsAre(5)));
  ExpectError([&] { cut("a", 0); }, ErrorCode::kInvalidArgument,
              "sentences of at most 0 tokens: expected at least 1");
}

}  // namespace
}  // namespace skiff::text
