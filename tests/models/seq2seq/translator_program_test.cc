#include "models/seq2seq/translator_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/io/inference_model.h"
#include "framework/io/npz.h"
#include "framework/io/parameters.h"
#include "framework/tensor/ragged.h"
#include "framework/text/marks.h"
#include "framework/text/pair_reader.h"
#include "models/seq2seq/seq2seq.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/error_text.h"
#include "tests/harness/temp_directory.h"
#include "tests/models/seq2seq/fluid_search.h"
#include "tests/models/seq2seq/unrolled_decoder.h"
#include "tests/models/seq2seq/variants.h"

namespace skiff::models {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::SizeIs;

using Ids = std::vector<int64_t>;
using Sequences = std::vector<Ids>;

constexpr int64_t kMost = 6;  // tokens of a translation by hand

Seq2SeqOptions Small() {
  return {.source_tokens = 9, .target_tokens = 7, .embedding = 4, .hidden = 5};
}

// A translation, up to its end if it has one.
struct Hypothesis {
  Ids tokens;
  double score = 0;  // log(probability), or what ranks it
  std::vector<std::vector<float>> attention;

  bool has_ended() const { return !tokens.empty() && tokens.back() == text::kEndId; }
};

// A network that nobody has trained, and its programs.
class Network {
 public:
  explicit Network(const Seq2SeqOptions& options) : options_(options) {
    const training::TrainingProgram training = BuildSeq2Seq(options, {}, 1);
    executor_.Run(*training.startup);
    for (const std::string& name : PersistableNames(*training.test)) {
      // Else all tokens would be about as probable.
      for (float& value : executor_.scope().FindMutable(name)->values<float>()) value *= 3;
    }
  }

  const Seq2SeqOptions& options() const { return options_; }
  Executor& executor() { return executor_; }

  // Makes the end more probable, or less.
  void AddToScoreOfEnd(float score) {
    executor_.scope().FindMutable("scores.b")->values<float>()[text::kEndId] += score;
    decoder_.Forget();
  }

  // Returns the hypothesis with another token behind it.
  Hypothesis Continued(const Ids& source, const Hypothesis& hypothesis, int64_t token) {
    const UnrolledDecoder::Step& step = decoder_.After(source, hypothesis.tokens);
    Hypothesis longer = hypothesis;
    longer.tokens.push_back(token);
    longer.score += step.log_probabilities[static_cast<size_t>(token)];
    longer.attention.push_back(step.attention);
    return longer;
  }

 private:
  Seq2SeqOptions options_;
  Executor executor_{Place::Cpu()};
  UnrolledDecoder decoder_{&executor_, options_, kMost};
};

double Rank(const Hypothesis& hypothesis, double length_penalty) {
  const auto tokens = static_cast<double>(hypothesis.tokens.size());
  return hypothesis.score / std::pow((5 + tokens) / 6, length_penalty);
}

// Replaces scores by what ranks the hypotheses, and puts the best one first.
void Order(std::vector<Hypothesis>* hypotheses, double length_penalty) {
  for (Hypothesis& hypothesis : *hypotheses) hypothesis.score = Rank(hypothesis, length_penalty);
  std::ranges::sort(*hypotheses, std::greater<>(), &Hypothesis::score);
}

// Returns every translation of at most `most` tokens.
std::vector<Hypothesis> AllTranslations(Network* network, const Ids& source, size_t most) {
  std::vector<Hypothesis> all;
  const std::function<void(const Hypothesis&)> visit = [&](const Hypothesis& hypothesis) {
    if (hypothesis.has_ended() || hypothesis.tokens.size() == most) {
      all.push_back(hypothesis);
      return;
    }
    for (int64_t token = 0; token < network->options().target_tokens; ++token) {
      visit(network->Continued(source, hypothesis, token));
    }
  };
  visit({});
  return all;
}

// Returns the hypotheses of a beam search after so many steps, the best one first.
std::vector<Hypothesis> SearchByHand(Network* network, const Ids& source, const BeamOptions& beam,
                                     int64_t steps) {
  const auto rank = [&](const Hypothesis& h) { return Rank(h, double{beam.length_penalty}); };
  std::vector<Hypothesis> kept = {{}};
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<Hypothesis> candidates;
    for (const Hypothesis& hypothesis : kept) {
      if (hypothesis.has_ended()) {
        candidates.push_back(hypothesis);
        continue;
      }
      for (int64_t token = 0; token < network->options().target_tokens; ++token) {
        candidates.push_back(network->Continued(source, hypothesis, token));
      }
    }
    std::ranges::sort(candidates, std::greater<>(), rank);
    candidates.resize(std::min(candidates.size(), static_cast<size_t>(beam.width)));
    kept = std::move(candidates);
  }
  Order(&kept, double{beam.length_penalty});
  return kept;
}

// The program of a beam search.
class BeamTranslator {
 public:
  BeamTranslator(Network* network, const BeamOptions& beam)
      : width_(beam.width),
        program_(BuildBeamTranslator(network->options(), beam, &outputs_)),
        compiled_(network->executor().Compile(*program_, Poisoned())) {}

  // Returns the hypotheses of each sentence that exist, the best one first.
  std::vector<std::vector<Hypothesis>> Translate(const Sequences& sources, int64_t most) {
    const std::vector<Tensor> found =
        compiled_.Run({{text::PairReader::kSource, RaggedTensor<int64_t>(sources)},
                       {kTranslationRoom, Tensor({most}, DType::kInt64)}},
                      {outputs_.tokens, outputs_.scores, outputs_.parents, outputs_.weights});
    steps_ = found[0].shape()[0];
    const int64_t columns = std::ssize(sources) * width_;
    EXPECT_EQ(found[0].shape(), Shape({steps_, columns}));
    EXPECT_EQ(found[1].shape(), Shape({columns}));
    EXPECT_EQ(found[2].shape(), Shape({steps_, columns}));
    std::vector<std::vector<Hypothesis>> translations;
    int64_t first = 0;  // of the sentence, among all source tokens
    for (int64_t s = 0; s < std::ssize(sources); ++s) {
      const int64_t length = std::ssize(sources[static_cast<size_t>(s)]);
      std::vector<Hypothesis>& hypotheses = translations.emplace_back();
      for (int64_t column = s * width_; column < (s + 1) * width_; ++column) {
        const float score = found[1].values<float>()[static_cast<size_t>(column)];
        if (score < kNoHypothesis) continue;
        Hypothesis& hypothesis = hypotheses.emplace_back();
        hypothesis.score = score;
        for (int64_t t = 0; t < steps_; ++t) {
          const auto at = static_cast<size_t>(t * columns + column);
          const int64_t token = found[0].values<int64_t>()[at];
          if (hypothesis.has_ended()) {
            EXPECT_EQ(token, text::kEndId);
            continue;
          }
          hypothesis.tokens.push_back(token);
          const int64_t parent = found[2].values<int64_t>()[at] - s * width_;
          const float* weights =
              found[3].data<float>() + t * found[3].shape()[1] + first * width_ + parent * length;
          hypothesis.attention.emplace_back(weights, weights + length);
        }
      }
      first += length;
    }
    return translations;
  }

  // Of the last translation.
  int64_t steps() const { return steps_; }

 private:
  static CompileOptions Poisoned() {
    CompileOptions options;
    options.memory.poison_dead_memory = true;
    return options;
  }

  int64_t width_;
  int64_t steps_ = 0;
  BeamTranslatorOutputs outputs_;
  std::unique_ptr<Program> program_;
  CompiledProgram compiled_;
};

void ExpectSame(const std::vector<Hypothesis>& found, const std::vector<Hypothesis>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE(StrCat("hypothesis ", i));
    EXPECT_EQ(found[i].tokens, expected[i].tokens);
    EXPECT_NEAR(found[i].score, expected[i].score, 1e-4);
    ASSERT_EQ(found[i].attention.size(), expected[i].attention.size());
    for (size_t t = 0; t < found[i].attention.size(); ++t) {
      EXPECT_THAT(found[i].attention[t], Pointwise(FloatNear(1e-5f), expected[i].attention[t]));
    }
  }
}

const Sequences kSentences = {{3, 4, 5}, {6}, {8, 3, 8, 7, 4}};

class BeamTranslatorOfVariant : public ::testing::TestWithParam<Variant> {
 protected:
  // Some hypotheses of each network end early then, and others don't.
  BeamTranslatorOfVariant() { network_.AddToScoreOfEnd(1.5f); }

  static Seq2SeqOptions Options() {
    Seq2SeqOptions options = Small();
    GetParam().set(&options);
    return options;
  }

  Network network_{Options()};
};
INSTANTIATE_TEST_SUITE_P(Variants, BeamTranslatorOfVariant, ::testing::ValuesIn(kVariants),
                         NameOfVariant);

TEST_P(BeamTranslatorOfVariant, TakesTheMostProbableTokensWithABeamOfOne) {
  TranslatorOutputs greedy;
  const std::unique_ptr<Program> program = BuildTranslator(network_.options(), &greedy);
  const std::vector<Tensor> found =
      network_.executor().Run(*program,
                              {{text::PairReader::kSource, RaggedTensor<int64_t>(kSentences)},
                               {kTranslationRoom, Tensor({kMost}, DType::kInt64)}},
                              {greedy.tokens, greedy.weights});
  BeamTranslator translator(&network_, {.width = 1});
  const auto translations = translator.Translate(kSentences, kMost);
  EXPECT_EQ(translator.steps(), found[0].shape()[0]);
  size_t first = 0;
  for (size_t s = 0; s < kSentences.size(); ++s) {
    ASSERT_THAT(translations[s], SizeIs(1));
    const Hypothesis& hypothesis = translations[s][0];
    for (size_t t = 0; t < hypothesis.tokens.size(); ++t) {
      EXPECT_EQ(hypothesis.tokens[t], found[0].values<int64_t>()[t * kSentences.size() + s]);
      const auto weights = found[1].values<float>().subspan(
          t * static_cast<size_t>(found[1].shape()[1]) + first, kSentences[s].size());
      EXPECT_THAT(hypothesis.attention[t], Pointwise(FloatNear(1e-6f), weights));
    }
    first += kSentences[s].size();
  }
}

TEST_P(BeamTranslatorOfVariant, FindsWhatASearchByHandFinds) {
  int64_t ended_early = 0, open = 0;
  for (const BeamOptions beam : {BeamOptions{.width = 2},
                                 {.width = 3, .length_penalty = 0.7f},
                                 {.width = 5, .length_penalty = 2},
                                 {.width = 9}}) {
    SCOPED_TRACE(StrCat("width ", beam.width, ", length_penalty ", beam.length_penalty));
    BeamTranslator translator(&network_, beam);
    const auto found = translator.Translate(kSentences, kMost);
    for (size_t s = 0; s < kSentences.size(); ++s) {
      SCOPED_TRACE(StrCat("sentence ", s));
      ExpectSame(found[s], SearchByHand(&network_, kSentences[s], beam, translator.steps()));
      // It may have stopped early, but not too early.
      ExpectSame({found[s][0]}, {SearchByHand(&network_, kSentences[s], beam, kMost)[0]});
      for (const Hypothesis& hypothesis : found[s]) {
        ended_early += hypothesis.tokens.size() < size_t{kMost} ? 1 : 0;
        open += hypothesis.has_ended() ? 0 : 1;
      }
    }
  }
  EXPECT_GT(ended_early, 0);
  EXPECT_GT(open, 0);
}

// One plan serves sentences by themselves and batches in any order.
TEST_P(BeamTranslatorOfVariant, SentencesOfOneBatchDoNotMix) {
  const Sequences reversed = {kSentences.rbegin(), kSentences.rend()};
  for (const bool ends : {true, false}) {
    SCOPED_TRACE(ends ? "translations end" : "no translation ends");
    if (!ends) network_.AddToScoreOfEnd(-30);
    BeamTranslator translator(&network_, {.width = 3, .length_penalty = 0.7f});
    const auto together = translator.Translate(kSentences, kMost);
    const auto back = translator.Translate(reversed, kMost);
    for (size_t s = 0; s < kSentences.size(); ++s) {
      SCOPED_TRACE(StrCat("sentence ", s));
      std::vector<Hypothesis> alone = translator.Translate({kSentences[s]}, kMost)[0];
      ExpectSame(back[kSentences.size() - 1 - s], together[s]);
      // By itself a sentence may stop earlier.
      ExpectSame({together[s][0]}, {alone[0]});
      if (!ends) ExpectSame(together[s], alone);
    }
  }
}

// Few enough tokens that a beam holds every translation.
Seq2SeqOptions Tiny() {
  return {.source_tokens = 9, .target_tokens = 4, .embedding = 4, .hidden = 5};
}

// 1 + 3 + 9 translations end, and 27 don't.
TEST(BeamTranslatorTest, RanksAllTranslationsIfTheBeamHoldsThem) {
  Network network(Tiny());
  const Ids sentence = kSentences[0];
  for (const float length_penalty : {0.0f, 0.6f, 1.0f, 3.0f}) {
    SCOPED_TRACE(StrCat("length_penalty ", length_penalty));
    std::vector<Hypothesis> expected = AllTranslations(&network, sentence, 3);
    ASSERT_THAT(expected, SizeIs(40));
    Order(&expected, double{length_penalty});
    BeamTranslator translator(&network, {.width = 40, .length_penalty = length_penalty});
    ExpectSame(translator.Translate({sentence}, 3)[0], expected);
    EXPECT_EQ(translator.steps(), 3);
  }
}

TEST(BeamTranslatorTest, ALargePenaltyPrefersLongTranslations) {
  Network network(Tiny());
  BeamTranslator translator(&network, {.width = 40, .length_penalty = kLargestLengthPenalty});
  const auto found = translator.Translate({kSentences[0]}, 3)[0];
  ASSERT_THAT(found, SizeIs(40));
  EXPECT_THAT(found.front().tokens, SizeIs(3));
  EXPECT_THAT(found.back().tokens, ElementsAre(text::kEndId));
}

// What doesn't exist must not come to life, however large the penalty is.
TEST(BeamTranslatorTest, HasNoMoreHypothesesThanThereAre) {
  Network network(Tiny());
  for (const float length_penalty : {0.0f, 1.0f, kLargestLengthPenalty}) {
    SCOPED_TRACE(StrCat("length_penalty ", length_penalty));
    BeamTranslator translator(&network, {.width = 45, .length_penalty = length_penalty});
    EXPECT_THAT(translator.Translate({kSentences[0]}, 1)[0], SizeIs(4));
    EXPECT_THAT(translator.Translate({kSentences[0]}, 3)[0], SizeIs(40));
  }
}

TEST(BeamTranslatorTest, StopsAtTheMostTokens) {
  Network network(Small());
  network.AddToScoreOfEnd(-30);
  BeamTranslator translator(&network, {.width = 3});
  for (const int64_t most : {1, 2, 5}) {
    for (const std::vector<Hypothesis>& hypotheses : translator.Translate(kSentences, most)) {
      ASSERT_THAT(hypotheses, SizeIs(3));
      for (const Hypothesis& hypothesis : hypotheses) {
        EXPECT_THAT(hypothesis.tokens, SizeIs(most));
        EXPECT_THAT(hypothesis.tokens, Each(::testing::Ne(text::kEndId)));
      }
    }
    EXPECT_EQ(translator.steps(), most);
  }
}

// The others are open, but can't become better than it any more.
TEST(BeamTranslatorTest, StopsWhenTheBestHypothesisHasEnded) {
  Network network(Small());
  network.AddToScoreOfEnd(30);
  BeamTranslator translator(&network, {.width = 3, .length_penalty = 1});
  for (const std::vector<Hypothesis>& hypotheses : translator.Translate(kSentences, 100)) {
    ASSERT_THAT(hypotheses, SizeIs(3));
    EXPECT_THAT(hypotheses[0].tokens, ElementsAre(text::kEndId));
    EXPECT_THAT(hypotheses[1].tokens, ElementsAre(::testing::Ne(text::kEndId)));
    EXPECT_THAT(hypotheses[2].tokens, ElementsAre(::testing::Ne(text::kEndId)));
  }
  EXPECT_EQ(translator.steps(), 1);
}

// An ended hypothesis isn't the best one before no open one can overtake it.
TEST(BeamTranslatorTest, GoesOnWhileALongerTranslationMayBeBetter) {
  struct Found {
    size_t tokens;
    int64_t steps;
  };
  const auto search = [](size_t sentence, float added_to_end, float length_penalty) -> Found {
    Network network(Small());
    network.AddToScoreOfEnd(added_to_end);
    BeamTranslator translator(&network, {.width = 3, .length_penalty = length_penalty});
    const Hypothesis best = translator.Translate({kSentences[sentence]}, 30)[0][0];
    return {best.tokens.size(), translator.steps()};
  };
  // The more probable the end is, the fewer translations overtake the one that ends at once.
  bool goes_on_in_vain = false;
  bool is_overtaken = false;
  for (size_t sentence = 0; sentence < kSentences.size(); ++sentence) {
    for (float added = 1; added <= 6; added += 0.5f) {
      const Found most_probable = search(sentence, added, 0);
      if (most_probable.tokens != 1) continue;
      for (const float length_penalty : {0.3f, 1.0f}) {
        const Found best = search(sentence, added, length_penalty);
        EXPECT_GE(best.steps, most_probable.steps) << added;
        goes_on_in_vain |= best.tokens == 1 && best.steps > most_probable.steps && best.steps < 30;
        is_overtaken |= best.tokens > 1 && best.steps < 30;
      }
    }
  }
  EXPECT_TRUE(goes_on_in_vain);
  EXPECT_TRUE(is_overtaken);
}

// Saved and loaded as any other program, by an executor that has seen nothing of the network.
TEST(BeamTranslatorTest, RunsFromASavedInferenceModel) {
  Network network(Small());
  BeamTranslatorOutputs outputs;
  const std::unique_ptr<Program> program =
      BuildBeamTranslator(Small(), {.width = 3, .length_penalty = 0.6f}, &outputs);
  const FetchList fetches = {outputs.tokens, outputs.scores, outputs.parents, outputs.weights};
  const FeedList feeds = {{text::PairReader::kSource, RaggedTensor<int64_t>(kSentences)},
                          {kTranslationRoom, Tensor({kMost}, DType::kInt64)}};
  const std::vector<Tensor> expected = network.executor().Run(*program, feeds, fetches);
  const TempDirectory directory;
  SaveInferenceModel(directory.path(), {text::PairReader::kSource, kTranslationRoom}, fetches,
                     *program, network.executor().scope());
  Executor other;
  const InferenceModel model = LoadInferenceModel(directory.path(), &other.scope());
  const std::vector<Tensor> found = other.Run(*model.program, feeds, model.fetch_names);
  for (size_t i = 0; i < fetches.size(); ++i) {
    EXPECT_EQ(
        harness::FirstDifference(harness::ToArray(found[i]), harness::ToArray(expected[i]), 0), "")
        << fetches[i];
  }
}

TEST(BeamTranslatorTest, RefusesOptionsThatCannotBe) {
  BeamTranslatorOutputs outputs;
  const auto refused = [&](const BeamOptions& beam) {
    return InvalidArgumentText([&] { BuildBeamTranslator(Small(), beam, &outputs); });
  };
  EXPECT_THAT(refused({.width = 0}), HasSubstr("width = 0, expected at least 1"));
  EXPECT_THAT(refused({.width = -2}), HasSubstr("width = -2, expected at least 1"));
  for (const float penalty : {-0.5f, 10.5f, std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(
        refused({.width = 2, .length_penalty = penalty}),
        HasSubstr(StrCat("length_penalty = ", penalty, ", expected a number from 0 to 10")));
  }
  Seq2SeqOptions network = Small();
  network.cell = "rnn";
  EXPECT_THAT(InvalidArgumentText([&] { BuildBeamTranslator(network, {}, &outputs); }),
              HasSubstr("cell = \"rnn\""));
}

void ExpectTokensAndScores(const std::vector<Hypothesis>& found,
                           const std::vector<FluidSearch::Hypothesis>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].tokens, expected[i].tokens);
    EXPECT_NEAR(found[i].score, expected[i].score, 1e-4);
  }
}

TEST_P(BeamTranslatorOfVariant, FindsTheHypothesesOfTheOpsBeamSearch) {
  for (const int64_t width : {1, 2, 4, 9}) {
    SCOPED_TRACE(StrCat("width ", width));
    const auto search = [&](int64_t steps) {
      const FluidSearch fluid(network_.options(), width, steps);
      const std::vector<Tensor> fetched =
          network_.executor().Run(fluid.program(), FluidSearch::Feeds(kSentences), fluid.fetches());
      return FluidSearch::Hypotheses(fetched[0], fetched[1]);
    };
    BeamTranslator translator(&network_, {.width = width});
    const auto found = translator.Translate(kSentences, kMost);
    const auto expected = search(translator.steps());
    const auto of_all_steps = search(kMost);
    for (size_t s = 0; s < kSentences.size(); ++s) {
      ExpectTokensAndScores(found[s], expected[s]);
      // The translator stops when the best hypothesis can't change any more.
      ExpectTokensAndScores({found[s][0]}, {of_all_steps[s][0]});
    }
  }
}

// By the program that tests/models/seq2seq/write_translation_search.cc writes.
TEST(BeamTranslatorTest, FindsTheHypothesesOfPaddlePaddle) {
  const std::string folder = "tests/models/seq2seq/paddle_translations/";
  Network network(Small());
  // Its own parameters would end each translation at once.
  network.AddToScoreOfEnd(30);
  const TensorMap params = ReadNpz(folder + "params.npz");
  for (const auto& [name, value] : params) {
    Tensor* own = network.executor().scope().FindMutable(name);
    ASSERT_NE(own, nullptr) << name;
    ASSERT_EQ(own->shape(), value.shape()) << name;
    network.executor().scope().Set(name, value);
  }
  EXPECT_EQ(params.size(), PersistableNames(*BuildSeq2Seq(Small(), {}, 1).test).size());
  const TensorMap feeds = ReadNpz(folder + "feed.npz");
  const Tensor& ids = feeds.at(text::PairReader::kSource);
  Sequences sources;
  for (size_t s = 0; s + 1 < ids.lod()[0].size(); ++s) {
    const auto values = ids.values<int64_t>();
    sources.emplace_back(values.begin() + static_cast<int64_t>(ids.lod()[0][s]),
                         values.begin() + static_cast<int64_t>(ids.lod()[0][s + 1]));
  }
  const TensorMap fetched = ReadNpz(folder + "found.npz");
  const auto expected = FluidSearch::Hypotheses(fetched.at("ids"), fetched.at("scores"));
  ASSERT_EQ(expected.size(), sources.size());
  BeamTranslator translator(&network, {.width = std::ssize(expected[0])});
  const auto found = translator.Translate(sources, kMost);
  ASSERT_EQ(translator.steps(), kMost);
  for (size_t s = 0; s < sources.size(); ++s) ExpectTokensAndScores(found[s], expected[s]);
}

}  // namespace
}  // namespace skiff::models
