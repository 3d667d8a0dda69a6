#include "models/tagger/tagger_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "framework/io/file.h"
#include "models/tagger/chunk_f1.h"
#include "models/tagger/generated_names.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string MessageOf(const std::function<void()>& call) { return ErrorText(call); }

TEST(GeneratedNames, AreAFunctionOfTheirOptions) {
  const auto sentences = GenerateNames({.sentences = 40});
  const auto again = GenerateNames({.sentences = 40});
  const auto others = GenerateNames({.sentences = 40, .seed = 2});
  for (size_t i = 0; i < sentences.size(); ++i) {
    EXPECT_EQ(sentences[i].words, again[i].words);
    EXPECT_EQ(sentences[i].tags, again[i].tags);
    EXPECT_EQ(sentences[i].words.size(), sentences[i].tags.size());
  }
  EXPECT_NE(sentences[0].words, others[0].words);
  EXPECT_THAT(MessageOf([] { GenerateNames({.sentences = 0}); }), HasSubstr("sentences = 0"));
  EXPECT_THAT(MessageOf([] { GenerateNames({.new_words = 1.5}); }), HasSubstr("new_words = 1.5"));
}

TEST(GeneratedNames, ShareTheirWordsBetweenTypes) {
  std::map<std::string, std::set<std::string>> tags;
  for (const TaggedSentence& sentence : GenerateNames({.sentences = 3000})) {
    for (size_t i = 0; i < sentence.words.size(); ++i)
      tags[sentence.words[i]].insert(sentence.tags[i]);
  }
  EXPECT_THAT(tags.at("stone"), ::testing::IsSupersetOf({"O", "B-person", "B-place", "B-company"}));
  int64_t of_several = 0;
  for (const auto& [word, of_word] : tags) of_several += of_word.size() >= 4 ? 1 : 0;
  EXPECT_GT(of_several, 100);
}

TEST(TaggerData, GeneratedNamesAreHardForTheirWordsAlone) {
  const TaggerData data({.sentences = 1000});
  EXPECT_EQ(data.tags().size(), 7);
  EXPECT_LT(data.most_frequent_tag_f1(), 0.6);
  EXPECT_GT(data.most_frequent_tag_f1(), 0.1);
  EXPECT_THAT(data.extent(), HasSubstr("1000 to train, 200 to validate, 3 types of entities, "));
  // Names that weren't there in training.
  int64_t unknown = 0;
  const auto reader = data.ValidationReader();
  for (training::Batch batch; reader->Next(&batch);) {
    for (const int64_t id : batch.feed(TagReader::kWords).ToVector<int64_t>())
      unknown += id == 2 ? 1 : 0;
  }
  EXPECT_GT(unknown, 50);
}

class ConllFiles : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) const {
    AtomicWriteFile(JoinPath(directory_.path(), name), text);
  }
  std::string Data() const { return "conll:" + directory_.path(); }
  std::string Path(const std::string& name) const { return JoinPath(directory_.path(), name); }
  std::string Refused(const std::string& train, const std::string& valid) const {
    Write("train.txt", train);
    Write("valid.txt", valid);
    return MessageOf([&] { TaggerData({.data = Data(), .least_count = 1}); });
  }

  TempDirectory directory_;
};

TEST_F(ConllFiles, HaveAWordInEachLine) {
  Write("train.txt",
        "-DOCSTART- -X- -X- O\n\nKaron NNP I-NP B-PER\nleft VB I-VP O\n\n\n"
        "Tolmar\tB-ORG\r\nGroup\tI-ORG\r\n");
  const auto sentences = ReadConll(Path("train.txt"));
  ASSERT_EQ(sentences.size(), 2U);
  EXPECT_THAT(sentences[0].words, ElementsAre("Karon", "left"));
  EXPECT_THAT(sentences[0].tags, ElementsAre("B-PER", "O"));
  EXPECT_THAT(sentences[1].words, ElementsAre("Tolmar", "Group"));
  EXPECT_EQ(WhereIs(sentences[1], 1), Path("train.txt") + ":8");
}

TEST_F(ConllFiles, AreTrainingDataAndCutAtTheMostTokens) {
  Write("train.txt", "Karon B-PER\nleft O\nTolmar B-ORG\n");
  Write("valid.txt", "Karon B-PER\nKaron B-PER\n\nTolmar B-ORG\n");
  const TaggerData data({.data = Data(), .least_count = 1, .most_tokens = 2});
  EXPECT_EQ(data.tags().Text(), "IOB\nORG\nPER\n");
  EXPECT_EQ(data.Files().at(TagSet::kFile), data.tags().Text());
  training::Batch batch;
  ASSERT_TRUE(data.TrainReader()->Next(&batch));
  EXPECT_THAT(batch.feed(TagReader::kTags).ToVector<int64_t>(), ElementsAre(2, 4));
  EXPECT_EQ(batch.feed(TagReader::kTags).lod(), (LoD{{0, 2}}));
  EXPECT_EQ(data.most_frequent_tag_f1(), 2.0 * 2 / (3 + 2));
}

TEST_F(ConllFiles, AreRefusedWithFileAndLine) {
  const std::string good = "Karon B-PER\n";
  EXPECT_THAT(Refused("Karon B-PER\n\nleft\n", good),
              HasSubstr(Path("train.txt") + ":3 has a single column, \"left\": expected a word"));
  EXPECT_THAT(Refused("Karon B-PER\nleft X-PER\n", good),
              HasSubstr(Path("train.txt") + ":2: the tag is \"X-PER\", expected O, or B, I"));
  EXPECT_THAT(Refused(good, "\nKaron B-PER\nTolmar B-ORG\n"),
              HasSubstr(Path("valid.txt") + ":3: the tag B-ORG isn't among those to train on"));
  EXPECT_THAT(Refused(good, "Karon S-PER\n"), HasSubstr("the tag S-PER isn't among those"));
  EXPECT_THAT(Refused("\n\n", good), HasSubstr("train.txt has no sentences"));
  EXPECT_THAT(Refused("left O\n", good), HasSubstr("no word is tagged as an entity"));
  EXPECT_THAT(MessageOf([&] { TaggerData({.data = "conll:/no/such/folder"}); }),
              HasSubstr("/no/such/folder/train.txt"));
  EXPECT_THAT(MessageOf([&] { TaggerData({.data = "news"}); }),
              HasSubstr("data \"news\": expected names or conll:DIR"));
}

TEST(TagSet, FindsEntitiesAsChunkEvalDoes) {
  const TagSet iob({"a", "b"}, false);
  const auto entities = [](int64_t begin, int64_t end, int64_t type) {
    return NamedEntity{.begin = begin, .end = end, .type = type};
  };
  // I O I-a I-b B-b I-b B-a
  EXPECT_THAT(iob.EntitiesOf(std::vector<int64_t>{1, 4, 1, 3, 2, 3, 0}),
              ElementsAre(entities(0, 1, 0), entities(2, 3, 0), entities(3, 4, 1),
                          entities(4, 6, 1), entities(6, 7, 0)));
  const TagSet iobes({"a"}, true);
  // B I E S I S O E
  EXPECT_THAT(iobes.EntitiesOf(std::vector<int64_t>{0, 1, 2, 3, 1, 3, 4, 2}),
              ElementsAre(entities(0, 3, 0), entities(3, 4, 0), entities(4, 5, 0),
                          entities(5, 6, 0), entities(7, 8, 0)));
  EXPECT_THAT(iob.EntitiesOf({}), IsEmpty());
}

TEST_F(ConllFiles, TagSetsAreReadAgain) {
  for (const bool has_ends : {false, true}) {
    const TagSet set({"b", "a"}, has_ends);
    Write(TagSet::kFile, set.Text());
    EXPECT_EQ(TagSet::Load(Path(TagSet::kFile)).Text(), set.Text());
  }
  for (const char* text : {"", "IOB\n", "BIO\na\n", "IOB\nb\na\n", "IOB\na\na\n"}) {
    Write(TagSet::kFile, text);
    EXPECT_THAT(MessageOf([&] { TagSet::Load(Path(TagSet::kFile)); }), HasSubstr(TagSet::kFile))
        << text;
  }
}

TEST(ChunkF1, AddsUpTheCountsOfBatches) {
  const auto number = [](int64_t value) { return Tensor::FromValues<int64_t>({1}, {value}); };
  ChunkF1 f1;
  EXPECT_TRUE(std::isnan(f1.Value()));
  f1.Add(std::vector<Tensor>{number(1), number(1), number(1)});
  f1.Add(std::vector<Tensor>{number(9), number(5), number(1)});
  EXPECT_EQ(f1.Value(), 2.0 * 2 / (10 + 6));
  ChunkF1 other;
  other.AddCounts(1, 2, 1);
  other.Merge(*f1.State());
  EXPECT_EQ(other.Value(), 2.0 * 3 / (11 + 8));
  other.Reset();
  EXPECT_TRUE(std::isnan(other.Value()));
  EXPECT_THAT(MessageOf([&] { f1.Add(std::vector<Tensor>{number(1)}); }),
              HasSubstr("ChunkF1 gets 1 tensors, expected 3"));
}

}  // namespace
}  // namespace skiff::models
