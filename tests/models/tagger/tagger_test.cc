#include "models/tagger/tagger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/io/inference_model.h"
#include "models/tagger/sentence_tagger.h"
#include "models/tagger/tag_reader.h"
#include "models/tagger/tagger_data.h"
#include "tests/harness/error_text.h"
#include "tests/harness/pass_check.h"
#include "tests/harness/temp_directory.h"
#include "tests/harness/workload.h"

namespace skiff::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Sequences = std::vector<std::vector<int64_t>>;

TagSet Tags() { return {{"company", "person"}, /*has_ends=*/false}; }

TaggerOptions Small() {
  return {.words = 20, .tags = 5, .embedding = 6, .hidden = 4, .layers = 2, .dropout = 0};
}

// Sentences with tags of their words.
FeedList Feeds(const Sequences& words) {
  TaggedIds data{.words = words, .tags = words};
  for (auto& tags : data.tags) {
    for (int64_t& tag : tags) tag = tag * 7 % 5;
  }
  TagReader reader(&data, {.batch_size = std::ssize(words)});
  training::Batch batch;
  EXPECT_TRUE(reader.Next(&batch));
  return batch.feeds;
}

TEST(Tagger, GivesTheSameWithEveryPass) {
  training::TrainingProgram program = BuildTagger(Small(), Tags(), {}, 1);
  harness::Workload workload{.name = "tagger"};
  const FetchList fetches = {program.loss, "transitions@GRAD", "embedding_0.w_0@GRAD"};
  const FetchList of_test = {program.loss, program.model_outputs[0], program.metrics[0].streamed[0],
                             program.metrics[0].streamed[2]};
  workload.startup = std::move(program.startup);
  workload.runs = {{0, Feeds({{3, 4, 5}, {6}}), fetches},
                   {1, Feeds({{3, 4}, {8, 8, 8}}), of_test},
                   {0, Feeds({{7, 8, 3, 4}}), fetches},
                   {1, Feeds({{9}}), of_test}};
  workload.programs = {std::move(program.main), std::move(program.test)};
  EXPECT_THAT(harness::FaultsOfEveryPass(workload), IsEmpty());
}

TEST(Tagger, SentencesOfOneBatchDoNotMix) {
  const training::TrainingProgram program = BuildTagger(Small(), Tags(), {}, 1);
  Executor executor;
  executor.Run(*program.startup);
  const auto loss = [&](const Sequences& words) {
    return executor.Run(*program.test, Feeds(words), {program.loss})[0].Item<float>();
  };
  EXPECT_NEAR(loss({{3, 4, 5}, {6}}), (loss({{3, 4, 5}}) + loss({{6}})) / 2, 1e-6);
}

TEST(Tagger, LearnsTagsThatTheNeighboursTell) {
  const training::TrainingProgram program = BuildTagger(
      Small(), Tags(), {.optimizer = "adam", .learning_rate = 0.03f, .weight_decay = 0}, 1);
  Executor executor;
  executor.Run(*program.startup);
  // The tags of Feeds, but for word 5, whose tag the word before tells.
  FeedList feeds = Feeds({{3, 5, 4}, {4, 5, 3}, {6, 7}});
  ASSERT_EQ(feeds[1].first, TagReader::kTags);
  feeds[1].second.data<int64_t>()[1] = 1;
  feeds[1].second.data<int64_t>()[4] = 2;
  for (int step = 0; step < 80; ++step) executor.Run(*program.main, feeds, {});
  const std::vector<Tensor> found =
      executor.Run(*program.test, feeds, {program.model_outputs[0], program.loss});
  EXPECT_EQ(found[0].ToVector<int64_t>(), feeds[1].second.ToVector<int64_t>());
  EXPECT_LT(found[1].Item<float>(), 0.2f);
}

TEST(Tagger, RefusesWhatIsNoNetwork) {
  const auto message = [](const TaggerOptions& options) {
    return InvalidArgumentText([&] { BuildTagger(options, Tags(), {}, 1); });
  };
  EXPECT_THAT(message({.words = 0, .tags = 5}), HasSubstr("words = 0, expected at least 1"));
  EXPECT_THAT(message({.words = 9, .tags = 5, .layers = 0}), HasSubstr("layers = 0"));
  EXPECT_THAT(message({.words = 9, .tags = 7}),
              HasSubstr("tags = 7, expected those of the data, 5"));
}

// With random weights.
class SentenceTaggerTest : public ::testing::Test {
 protected:
  void Save() const {
    const training::TrainingProgram program = BuildTagger(Small(), Tags(), {}, 1);
    Executor executor;
    executor.Run(*program.startup);
    SaveInferenceModel(directory_.path(), program.model_inputs, program.model_outputs,
                       *program.test, executor.scope(),
                       {.files = {.params_filename = kCombinedParamsFile}});
    SaveFiles();
  }
  // A model that says tag `tag` of each word.
  void SaveOther(int64_t tag) const {
    Program main, startup;
    const ProgramGuard guard(&main, &startup);
    const Variable words = layers::Data(TagReader::kWords, {-1}, DType::kInt64, {.lod_level = 1});
    const Variable numbers = layers::Reshape(layers::Cast(words, DType::kFloat32), {-1, 1});
    const Variable tags = layers::Cast(
        layers::Scale(numbers, {.scale = 0, .bias = static_cast<float>(tag)}), DType::kInt64);
    SaveInferenceModel(directory_.path(), {words.name()}, {tags}, main, Scope(),
                       {.files = {.params_filename = kCombinedParamsFile}});
    SaveFiles();
  }
  void SaveFiles() const {
    std::map<std::string, std::string> files =
        text::TokenVocabulary::Of(std::vector<std::string>{"karon left tolmar group"},
                                  text::TokenKind::kWord, 20, 1)
            .Files(kWordSide);
    files.emplace(TagSet::kFile, Tags().Text());
    for (const auto& [name, text] : files) AtomicWriteFile(JoinPath(directory_.path(), name), text);
  }

  TempDirectory directory_;
};

TEST_F(SentenceTaggerTest, TagsEachSentence) {
  Save();
  SentenceTagger tagger(directory_.path());
  const std::vector<std::string> words = {"karon", "left", "zzz"};
  const auto found = tagger.EntitiesOf({words, {}, {"group"}});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(tagger.EntitiesOf({words})[0], found[0]);
  EXPECT_THAT(found[1], IsEmpty());
  EXPECT_THAT(tagger.EntitiesOf({}), IsEmpty());
  EXPECT_THAT(tagger.EntitiesOf({{}}), ElementsAre(IsEmpty()));
}

// What a program in a saved model's folder returns is input.
TEST_F(SentenceTaggerTest, RefusesWhatIsNoTag) {
  SaveOther(0);
  EXPECT_THAT(SentenceTagger(directory_.path()).EntitiesOf({{"karon"}})[0],
              ElementsAre(NamedEntity{.begin = 0, .end = 1, .type = 0}));
  SaveOther(5);
  EXPECT_THAT(
      InvalidArgumentText([&] { SentenceTagger(directory_.path()).EntitiesOf({{"karon"}}); }),
      HasSubstr("element 0 of the tags is 5, expected 0 to 4"));
}

TEST(MarkedText, HasEntitiesInBrackets) {
  EXPECT_EQ(
      MarkedText({"karon", "belmir", "left", "tolmar"},
                 {{.begin = 0, .end = 2, .type = 1}, {.begin = 3, .end = 4, .type = 0}}, Tags()),
      "[person karon belmir] left [company tolmar]");
  EXPECT_EQ(MarkedText({}, {}, Tags()), "");
}

}  // namespace
}  // namespace skiff::models
