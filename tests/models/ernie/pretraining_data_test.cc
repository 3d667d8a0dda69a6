#include "models/ernie/pretraining_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "framework/io/file.h"
#include "framework/text/instance.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"

namespace skiff::models {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

PretrainingDataOptions SmallWorld() {
  return {.vocabulary_size = 1000,
          .length = 48,
          .most_masked = 8,
          .world_documents = 500,
          .batch_size = 4};
}

class PretrainingDataFiles : public ::testing::Test {
 protected:
  // Documents of three sentences each.
  std::string Texts(int documents) {
    std::string text;
    for (int i = 0; i < documents; ++i) {
      text += "the cat sat on the mat .\nit saw a dog .\nthe dog ran away .\n\n";
    }
    return Write("texts", text);
  }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = directory_.path() + "/" + name;
    AtomicWriteFile(path, text);
    return path;
  }

  TempDirectory directory_;
};

TEST(PretrainingData, TheWorldAsksQuestions) {
  const auto data = MakePretrainingData(SmallWorld());
  EXPECT_THAT(data->extent(), HasSubstr("questions about entities (the most frequent entity"));
  EXPECT_THAT(data->sentence_tasks(), IsEmpty());
  const auto validation = data->ValidationReader();
  validation->StartEpoch(0);
  training::Batch batch;
  ASSERT_TRUE(validation->Next(&batch));
  // Each question masks at least the answer.
  const Tensor& weights = batch.feed(text::kMaskedWeights);
  for (int64_t row = 0; row < batch.samples; ++row) {
    EXPECT_EQ(weights.data<float>()[row * 8], 1) << row;
  }
}

// Nobody asks in which order the sentences of a question are.
TEST(PretrainingData, QuestionsHaveNoSentenceLabelAndATaskThatIsTrained) {
  PretrainingDataOptions options = SmallWorld();
  options.sentence_tasks = "reordering,distance";
  const auto data = MakePretrainingData(options);
  const auto validation = data->ValidationReader();
  training::Batch batch;
  ASSERT_TRUE(validation->Next(&batch));
  EXPECT_THAT(batch.feed(text::kSentenceLabel).ToVector<int64_t>(), Each(text::kIgnoredLabel));
  EXPECT_THAT(batch.feed(text::kTaskIds).ToVector<int64_t>(), Each(data->sentence_tasks()[0].id));
}

TEST(PretrainingData, ReadersGiveTheSameTwice) {
  const auto first = MakePretrainingData(SmallWorld());
  const auto second = MakePretrainingData(SmallWorld());
  const auto a = first->TrainReader();
  const auto b = second->TrainReader();
  a->StartEpoch(1);
  b->StartEpoch(1);
  training::Batch x, y;
  int64_t batches = 0;
  while (a->Next(&x)) {
    ASSERT_TRUE(b->Next(&y));
    EXPECT_EQ(x.feed(text::kTokenIds).ToVector<int64_t>(),
              y.feed(text::kTokenIds).ToVector<int64_t>());
    ++batches;
  }
  EXPECT_EQ(batches, a->batches_in_epoch());
}

TEST_F(PretrainingDataFiles, TextsAreHeldBack) {
  PretrainingDataOptions options = SmallWorld();
  options.data = "text:" + Texts(20);
  options.vocabulary_size = 200;
  options.masking = "word";
  options.held_back = 0.1;
  const auto data = MakePretrainingData(options);
  EXPECT_THAT(data->extent(), HasSubstr("18 documents to train, 2 to validate"));
  ASSERT_THAT(data->sentence_tasks(), SizeIs(1));
  EXPECT_EQ(data->sentence_tasks()[0].name, "next_sentence");
  EXPECT_EQ(data->sentence_tasks()[0].classes, 2);
  EXPECT_EQ(data->tasks(), 0);
}

TEST_F(PretrainingDataFiles, DocumentsThatATaskCannotUseAreCounted) {
  const std::string one = "alone .\n\n";
  const std::string two = "the cat sat .\nit was tired .\n\n";
  const std::string three = "the dog ran .\nit was fast .\nit won .\n\n";
  PretrainingDataOptions options = SmallWorld();
  options.data = "text:" + Write("texts", one + two + two + three + three + three + three + three);
  options.vocabulary_size = 200;
  options.masking = "word";
  options.sentence_tasks = "next_sentence,distance";
  options.held_back = 0.25;
  EXPECT_THAT(MakePretrainingData(options)->extent(),
              HasSubstr("6 documents to train, 1 with too few sentences for next_sentence, 3 with "
                        "too few sentences for distance, 2 to validate, "));
}

TEST_F(PretrainingDataFiles, SentenceTasksMix) {
  PretrainingDataOptions options = SmallWorld();
  options.data = "text:" + Texts(40);
  options.vocabulary_size = 200;
  options.masking = "word";
  options.held_back = 0.1;
  options.sentence_tasks = "reordering,distance";
  const auto data = MakePretrainingData(options);
  ASSERT_THAT(data->sentence_tasks(), SizeIs(2));
  EXPECT_EQ(data->sentence_tasks()[0].classes, 1 + 2 + 6);
  EXPECT_EQ(data->sentence_tasks()[1].classes, 3);
  EXPECT_EQ(data->sentences(), 3);
  EXPECT_EQ(data->tasks(), 2);
  const auto reader = data->TrainReader();
  reader->StartEpoch(0);
  std::map<int64_t, int64_t> sequences;  // of each task
  training::Batch batch;
  while (reader->Next(&batch)) {
    const std::vector<int64_t> ids = batch.feed(text::kTaskIds).ToVector<int64_t>();
    for (size_t i = 0; i < ids.size(); i += static_cast<size_t>(options.length))
      ++sequences[ids[i]];
  }
  EXPECT_EQ(data->sentence_tasks()[0].id, 0);
  EXPECT_EQ(data->sentence_tasks()[1].id, 1);
  EXPECT_THAT(sequences, ElementsAre(Pair(0, 36), Pair(1, 36)));
}

// The classes of one file alternate, the other is sorted by class. In both, the last two texts of a
// class have a word of their own.
TEST_F(PretrainingDataFiles, LabelledTextsAreHeldBackAsFineTuningDoesIt) {
  std::string alternating, sorted;
  for (int i = 0; i < 20; ++i) {
    const std::string text = i < 18 ? "\tthe cat sat on the mat .\n" : "\tzebra zebra zebra\n";
    alternating += "0" + text + "1" + text;
  }
  for (const std::string label : {"0", "1"}) {
    for (int i = 0; i < 20; ++i) sorted += label + (i < 18 ? "\tthe dog ran .\n" : "\tzebra\n");
  }
  PretrainingDataOptions options = SmallWorld();
  options.data = "labelled:" + Write("first", alternating) + "," + Write("second", sorted);
  options.vocabulary_size = 200;
  options.masking = "word";
  options.sentence_tasks = "none";
  options.held_back = 0.1;
  const auto data = MakePretrainingData(options);
  EXPECT_THAT(data->extent(), HasSubstr("72 documents to train, 8 to validate"));
  EXPECT_TRUE(data->vocabulary().Find("mat").has_value());
  EXPECT_TRUE(data->vocabulary().Find("dog").has_value());
  EXPECT_FALSE(data->vocabulary().Find("zebra").has_value());
}

TEST_F(PretrainingDataFiles, AnErrorNamesTheFileThatIsTooShort) {
  PretrainingDataOptions options = SmallWorld();
  options.masking = "word";
  options.data = "text:" + Texts(20) + "," + Write("one", "only one sentence .\n");
  EXPECT_THAT(ErrorText([&] { MakePretrainingData(options); }),
              HasSubstr("one: cannot hold back a share of 0.1 of 1 examples"));
}

// A lexicon that is given takes the place of the world's.
TEST_F(PretrainingDataFiles, MasksThePhrasesThatAreGiven) {
  PretrainingDataOptions options = SmallWorld();
  options.lexicon_file = Write("lexicon", "the city of\n");
  const auto given = MakePretrainingData(options);
  const auto world = MakePretrainingData(SmallWorld());
  const auto first = given->TrainReader();
  const auto second = world->TrainReader();
  training::Batch x, y;
  ASSERT_TRUE(first->Next(&x) && second->Next(&y));
  EXPECT_NE(x.feed(text::kMaskedLabels).ToVector<int64_t>(),
            y.feed(text::kMaskedLabels).ToVector<int64_t>());
}

// Two sentences of words 5 and 6, after the five special tokens of the vocabulary.
class InstanceFiles : public PretrainingDataFiles {
 protected:
  InstanceFiles() {
    options_.vocabulary_file = Write("vocabulary", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n");
    options_.masking = "word";
    std::string lines;
    for (int i = 0; i < 10; ++i) {
      lines += "2 5 3 6 6 3;0 0 0 1 1 1;0 1 2 3 4 5;-1 0 -1 0 0 -1;" + std::to_string(i % 2) + "\n";
    }
    options_.data = "ernie_demo:" + Write("instances", lines);
  }

  PretrainingDataOptions options_ = SmallWorld();
};

TEST_F(InstanceFiles, HaveOneSentenceTaskOrNone) {
  ASSERT_THAT(MakePretrainingData(options_)->sentence_tasks(), SizeIs(1));
  options_.sentence_tasks = "next_sentence";
  EXPECT_EQ(MakePretrainingData(options_)->sentence_tasks()[0].name, "next_sentence");
  options_.sentence_tasks = "none";
  EXPECT_THAT(MakePretrainingData(options_)->sentence_tasks(), IsEmpty());
  for (const char* tasks : {"distance", "next_sentence,reordering", "rhyme", ""}) {
    options_.sentence_tasks = tasks;
    EXPECT_EQ(ErrorText([&] { MakePretrainingData(options_); }),
              "sentence_tasks \"" + options_.sentence_tasks + "\" of " + options_.data +
                  ": expected next_sentence, whose labels it has, or none");
  }
}

TEST_F(InstanceFiles, AreAtMostAsLongAsInputs) {
  options_.length = 6;
  MakePretrainingData(options_);
  options_.length = 5;
  EXPECT_EQ(InvalidArgumentText([&] { MakePretrainingData(options_); }),
            options_.data.substr(std::string("ernie_demo:").size()) +
                ":1 has 6 tokens: expected at most length = 5");
}

TEST_F(InstanceFiles, PhrasesThatTheVocabularyLacksAreCounted) {
  const std::string skipped = ", 2 phrases without tokens";
  options_.masking = "phrase";
  options_.lexicon_file = Write("lexicon", "a b\na 好\nb 好\n");
  EXPECT_THAT(MakePretrainingData(options_)->extent(), EndsWith(skipped));

  PretrainingDataOptions world = SmallWorld();
  world.lexicon_file = Write("lexicon", "the city of\nthe 好\n好\n");
  EXPECT_THAT(MakePretrainingData(world)->extent(), EndsWith(skipped));

  PretrainingDataOptions texts = SmallWorld();
  texts.data = "text:" + Texts(20);
  texts.vocabulary_size = 200;
  texts.lexicon_file = Write("lexicon", "the cat\nthe 好\n好\n");
  EXPECT_THAT(MakePretrainingData(texts)->extent(), EndsWith(skipped));
}

TEST_F(PretrainingDataFiles, RefusesWhatItCannotTrainOn) {
  const auto error = [](const auto& change) {
    PretrainingDataOptions options = SmallWorld();
    options.masking = "word";
    change(&options);
    return ErrorText([&] { MakePretrainingData(options); });
  };
  EXPECT_THAT(error([](auto* o) { o->data = "moon"; }), HasSubstr("expected world, text:FILE"));
  EXPECT_THAT(error([](auto* o) { o->data = "moon:x"; }), HasSubstr("expected world, text:FILE"));
  EXPECT_THAT(error([](auto* o) { o->data = "text:,"; }), HasSubstr("text:,: no words"));
  EXPECT_THAT(error([](auto* o) { o->data = "text:/nowhere"; }), HasSubstr("/nowhere"));
  EXPECT_THAT(error([&](auto* o) { o->data = "text:" + Write("empty", ""); }), HasSubstr("empty"));
  EXPECT_THAT(error([&](auto* o) { o->data = "text:" + Write("one", "only one sentence .\n"); }),
              HasSubstr("hold back"));
  EXPECT_THAT(error([](auto* o) { o->masking = "letter"; }),
              HasSubstr("expected piece, word or phrase"));
  EXPECT_THAT(error([](auto* o) { o->sentence_tasks = "rhyme"; }), HasSubstr("rhyme"));
  EXPECT_THAT(error([](auto* o) { o->sentence_tasks = "none,distance"; }),
              HasSubstr("sentence_tasks \"none,distance\": expected none alone"));
  EXPECT_THAT(error([](auto* o) { o->sentence_tasks = "distance,distance"; }),
              HasSubstr("sentence_tasks \"distance,distance\" name distance twice"));
  EXPECT_THAT(error([](auto* o) { o->sentence_tasks = ""; }), HasSubstr("expected names of tasks"));
  EXPECT_THAT(error([&](auto* o) {
                o->data = "text:" + Texts(20);
                o->masking = "phrase";
              }),
              HasSubstr("expected a lexicon"));
  EXPECT_THAT(error([&](auto* o) { o->data = "ernie_demo:" + Write("ids", "1;0;0;0;0\n"); }),
              HasSubstr("token ids mean nothing without a vocabulary"));
  EXPECT_THAT(error([](auto* o) { o->lexicon_file = "names"; }),
              HasSubstr("lexicon names: masking \"word\" doesn't read it: expected masking "
                        "\"phrase\", or no lexicon"));
  EXPECT_THAT(error([&](auto* o) { o->vocabulary_file = Write("vocabulary", "a\nb\n"); }),
              HasSubstr("[PAD]"));
}

}  // namespace
}  // namespace skiff::models
