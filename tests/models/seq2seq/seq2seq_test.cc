#include "models/seq2seq/seq2seq.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "framework/io/parameters.h"
#include "framework/tensor/ragged.h"
#include "framework/text/pair_reader.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/error_text.h"
#include "tests/harness/pass_check.h"
#include "tests/harness/tolerance.h"
#include "tests/harness/workload.h"
#include "tests/models/seq2seq/variants.h"

namespace skiff::models {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Sequences = std::vector<std::vector<int64_t>>;

Seq2SeqOptions Small() {
  return {.source_tokens = 9, .target_tokens = 8, .embedding = 4, .hidden = 5};
}

// Feeds of a batch of these pairs.
FeedList Feeds(const Sequences& sources, const Sequences& targets) {
  const text::TokenPairs pairs{.sources = sources, .targets = targets};
  text::PairReader reader(&pairs, {});
  training::Batch batch;
  reader.Next(&batch);
  return batch.feeds;
}

class Seq2Seq : public ::testing::TestWithParam<Variant> {
 protected:
  Seq2Seq() { GetParam().set(&options_); }

  Seq2SeqOptions options_ = Small();
};
INSTANTIATE_TEST_SUITE_P(Variants, Seq2Seq, ::testing::ValuesIn(kVariants), NameOfVariant);

TEST_P(Seq2Seq, GivesTheSameWithEveryPass) {
  training::TrainingProgram program = BuildSeq2Seq(options_, {}, 1);
  harness::Workload workload{.name = "seq2seq"};
  const FetchList fetches = {program.loss, std::string(kSourceTable) + "@GRAD"};
  workload.startup = std::move(program.startup);
  workload.runs = {{0, Feeds({{3, 4, 5}, {6}}, {{3, 4}, {5, 6, 7}}), fetches},
                   {1, Feeds({{3, 4}, {8, 8, 8}}, {{7}, {5, 3}}), {program.loss}},
                   {0, Feeds({{7, 8, 3, 4}}, {{3, 4, 5, 6}}), fetches},
                   {0, Feeds({{3}, {4}, {5, 6}}, {{3}, {4}, {5}}), {program.loss}}};
  workload.programs = {std::move(program.main), std::move(program.test)};
  EXPECT_THAT(harness::FaultsOfEveryPass(workload), IsEmpty());
}

// A pair has the same loss beside others, shorter and longer ones, as by itself.
TEST_P(Seq2Seq, PairsOfOneBatchDoNotMix) {
  const training::TrainingProgram program = BuildSeq2Seq(options_, {}, 1);
  Executor executor;
  executor.Run(*program.startup);
  const auto loss = [&](const Sequences& sources, const Sequences& targets) {
    return executor.Run(*program.test, Feeds(sources, targets), {program.loss})[0].Item<float>();
  };
  // Means over tokens, of which each target has one more than it says: its end.
  const float first = loss({{3, 4, 5}}, {{3, 4}});
  const float second = loss({{6}}, {{5, 6, 7, 3}});
  EXPECT_NEAR(loss({{3, 4, 5}, {6}}, {{3, 4}, {5, 6, 7, 3}}), (3 * first + 5 * second) / 8, 1e-6);
  EXPECT_NEAR(loss({{6}, {3, 4, 5}}, {{5, 6, 7, 3}, {3, 4}}), (3 * first + 5 * second) / 8, 1e-6);
}

// The training by one op and that by a loop of layers, of options with either decoder.
struct BothDecoders {
  explicit BothDecoders(Seq2SeqOptions options) {
    options.decoder = "attention_decoder";
    op = BuildSeq2Seq(options, {}, 1);
    options.decoder = "dynamic_rnn";
    loop = BuildSeq2Seq(options, {}, 1);
  }

  training::TrainingProgram op;
  training::TrainingProgram loop;
};

// So a saved model, or a checkpoint, of one is good for the other.
TEST_P(Seq2Seq, HasTheSameStateWithEitherDecoder) {
  if (options_.input_feeding) GTEST_SKIP() << "always a loop";
  const BothDecoders both(options_);
  const auto dims = [](const training::TrainingProgram& program) {
    std::map<std::string, std::vector<int64_t>> dims;
    for (const std::string& name : PersistableNames(*program.main))
      dims[name] = program.main->root()->FindVar(name)->dims;
    return dims;
  };
  EXPECT_EQ(dims(both.op), dims(both.loop));
}

// In a batch in which one sentence has no tokens, which a PairReader would refuse.
TEST_P(Seq2Seq, HasTheSameLossAndGradientsWithEitherDecoder) {
  if (options_.input_feeding) GTEST_SKIP() << "always a loop";
  const BothDecoders both(options_);
  FeedList feeds = Feeds({{3, 4, 5}, {6}, {7}, {7, 8, 3, 4}}, {{3, 4}, {5, 6, 7, 3}, {4, 5}, {4}});
  for (auto& [name, tensor] : feeds) {
    if (name == text::PairReader::kSource)
      tensor = RaggedTensor<int64_t>({{3, 4, 5}, {6}, {}, {7, 8, 3, 4}});
  }
  std::vector<std::string> parameters;
  for (const auto& var : both.op.main->root()->vars()) {
    if (var->is_parameter) parameters.push_back(var->name);
  }
  Executor executor;
  executor.Run(*both.op.startup);
  std::map<std::string, Tensor> start;
  for (const std::string& name : PersistableNames(*both.op.main))
    start[name] = CopyToCpu(executor.scope().Get(name));
  const auto step = [&](const training::TrainingProgram& program) {
    for (const auto& [name, value] : start) executor.scope().Set(name, CopyToCpu(value));
    FetchList fetches = {program.loss};
    for (const std::string& name : parameters) fetches.push_back(name + "@GRAD");
    return executor.Run(*program.main, feeds, fetches);
  };
  const std::vector<Tensor> found = step(both.op);
  const std::vector<Tensor> expected = step(both.loop);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(harness::FirstDifference(harness::ToArray(found[i]), harness::ToArray(expected[i]),
                                       harness::Tolerances::kFloat32Gradient),
              "")
        << (i == 0 ? "loss" : parameters[i - 1]);
  }
}

// Dropout changes the loss of the training program, and nothing in the evaluation.
TEST_P(Seq2Seq, LeavesOutNumbersInTrainingOnly) {
  // The parameters stay as they are.
  const training::OptimizationOptions optimization = {.learning_rate = 0};
  const training::TrainingProgram all = BuildSeq2Seq(options_, optimization, 1);
  options_.dropout = 0.5f;
  const training::TrainingProgram some = BuildSeq2Seq(options_, optimization, 1);
  Executor executor;
  executor.Run(*all.startup);
  const FeedList feeds = Feeds({{3, 4, 5}, {6}}, {{3, 4}, {5, 6, 7}});
  const auto loss = [&](const Program& program, const std::string& fetched) {
    return executor.Run(program, feeds, {fetched})[0].Item<float>();
  };
  const float expected = loss(*all.test, all.loss);
  EXPECT_EQ(loss(*some.test, some.loss), expected);
  const float without = loss(*all.main, all.loss);
  EXPECT_GT(std::abs(loss(*some.main, some.loss) - without), 1e-3f);
  EXPECT_EQ(loss(*all.main, all.loss), without);
  EXPECT_EQ(loss(*all.test, all.loss), expected);
}

TEST(Seq2SeqNetwork, RefusesToLeaveOutAll) {
  Seq2SeqOptions options = Small();
  for (const float dropout : {1.0f, -0.1f}) {
    options.dropout = dropout;
    EXPECT_THAT(InvalidArgumentText([&] { BuildSeq2Seq(options, {}, 1); }),
                HasSubstr(StrCat("dropout = ", dropout, ", expected one in [0, 1)")));
  }
}

std::vector<std::string> ParametersOf(const Seq2SeqOptions& options) {
  const training::TrainingProgram program = BuildSeq2Seq(options, {}, 1);
  std::vector<std::string> names = PersistableNames(*program.test);
  std::ranges::sort(names);
  return names;
}

// Else a model that was trained before would not load.
TEST(Seq2SeqNetwork, KeepsTheNamesOfParameters) {
  EXPECT_THAT(
      ParametersOf(Small()),
      ElementsAre("attention.keys.w", "attention.query.b", "attention.query.w", "attention.v.w",
                  "decoder.b", "decoder.first.b", "decoder.first.w", "decoder.in.w", "decoder.w",
                  "encoder.backward.b", "encoder.backward.in.w", "encoder.backward.w",
                  "encoder.forward.b", "encoder.forward.in.w", "encoder.forward.w", "readout.b",
                  "readout.w", "scores.b", "scores.w", "source.table", "target.table"));
}

TEST(Seq2SeqNetwork, HasNoTableOfScoresIfTheyAreTied) {
  Seq2SeqOptions options = Small();
  options.tied_embeddings = true;
  EXPECT_THAT(ParametersOf(options), Not(Contains("scores.w")));
}

double DeviationOf(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const float value : values) {
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(values.size());
  return std::sqrt(squares / count - sum / count * (sum / count));
}

// Returns the values that `build` names, of an untrained network that has read two sentences of 2
// and 3 tokens. `build` declares the feed "word", a token for each of them. The parameters are in
// the scope of the executor.
std::vector<Tensor> RunOnTwoSentences(
    const Seq2SeqOptions& options,
    const std::function<FetchList(const Seq2SeqNetwork&, const Encoded&)>& build,
    Executor* executor) {
  Program program, startup;
  program.seed = startup.seed = 1;
  FetchList fetches;
  {
    const ProgramGuard guard(&program, &startup);
    const Seq2SeqNetwork network(options);
    const Encoded encoded =
        network.Encode(layers::Data("source", {-1}, DType::kInt64, {.lod_level = 1}));
    fetches = build(network, encoded);
  }
  executor->Run(startup);
  return executor->Run(program,
                       {{"source", RaggedTensor<int64_t>({{3, 4}, {5, 6, 7}})},
                        {"word", Tensor::FromValues<int64_t>({2}, std::vector<int64_t>{3, 4})}},
                       fetches);
}

// The deviations with which the training begins: of both tables, of the vectors that the decoder
// reads, and of the scores.
struct FirstDeviations {
  double source_table, target_table, words, scores;
};

FirstDeviations FirstDeviationsOf(const Seq2SeqOptions& options) {
  Executor executor;
  const std::vector<Tensor> found = RunOnTwoSentences(
      options,
      [](const Seq2SeqNetwork& network, const Encoded& encoded) -> FetchList {
        const Variable word = network.Embed(layers::Data("word", {-1}, DType::kInt64));
        const Decoded decoded = network.Step(word, network.FirstState(encoded), encoded);
        return {word.name(), network.Scores(decoded.outputs, word).name()};
      },
      &executor);
  const auto table = [&](const char* name) {
    return DeviationOf(executor.scope().Get(name).ToVector<float>());
  };
  return {.source_table = table(kSourceTable),
          .target_table = table(kTargetTable),
          .words = DeviationOf(found[0].ToVector<float>()),
          .scores = DeviationOf(found[1].ToVector<float>())};
}

// Xavier's values, of deviation 0.03 here, need many epochs to grow.
TEST(Seq2SeqNetwork, VectorsOfTokensBeginWithAVarianceOf1) {
  const Seq2SeqOptions options = {
      .source_tokens = 2000, .target_tokens = 3000, .embedding = 256, .hidden = 5};
  const FirstDeviations found = FirstDeviationsOf(options);
  EXPECT_NEAR(found.source_table, 1, 0.01);
  EXPECT_NEAR(found.target_table, 1, 0.01);
  EXPECT_NEAR(found.words, 1, 0.1);
}

// With the vectors of the test above, scores would have a deviation of many units.
TEST(Seq2SeqNetwork, ATableThatGivesTheScoresBeginsSmaller) {
  const Seq2SeqOptions options = {.source_tokens = 2000,
                                  .target_tokens = 3000,
                                  .embedding = 256,
                                  .hidden = 5,
                                  .tied_embeddings = true};
  const FirstDeviations found = FirstDeviationsOf(options);
  EXPECT_NEAR(found.source_table, 1, 0.01);
  EXPECT_NEAR(found.target_table, 1.0 / 16, 0.001);
  EXPECT_NEAR(found.words, 1, 0.1);
  EXPECT_LT(found.scores, 1);
}

// One step on two sentences; what it found, by sentence.
struct FoundStep {
  std::vector<float> state;                          // [2, 5]
  std::vector<float> context;                        // [2, 5]
  std::vector<float> weights;                        // of 2 and 3 tokens
  std::vector<float> states;                         // [5, 5]
  std::vector<float> keys;                           // [5, 5]
  std::vector<float> attention_v, query_w, query_b;  // parameters, of bahdanau
};

FoundStep RunStep(const std::string& attention) {
  Seq2SeqOptions options = Small();
  options.attention = attention;
  options.bidirectional = false;
  Executor executor;
  const std::vector<Tensor> found = RunOnTwoSentences(
      options,
      [&](const Seq2SeqNetwork& network, const Encoded& encoded) -> FetchList {
        const Variables before = network.FirstState(encoded);
        const Decoded decoded =
            network.Step(network.Embed(layers::Data("word", {-1}, DType::kInt64)), before, encoded);
        // Bahdanau's scores are by the state before.
        const Variable& state = attention == "luong" ? decoded.state[0] : before[0];
        return {state.name(), decoded.outputs[1].name(), decoded.weights.name(),
                encoded.states.name(), encoded.keys.name()};
      },
      &executor);
  FoundStep step{.state = found[0].ToVector<float>(),
                 .context = found[1].ToVector<float>(),
                 .weights = found[2].ToVector<float>(),
                 .states = found[3].ToVector<float>(),
                 .keys = found[4].ToVector<float>()};
  if (attention == "bahdanau") {
    step.attention_v = executor.scope().Get("attention.v.w").ToVector<float>();
    step.query_w = executor.scope().Get("attention.query.w").ToVector<float>();
    step.query_b = executor.scope().Get("attention.query.b").ToVector<float>();
  }
  return step;
}

// Checks weights and context of a step against score(sentence, token).
void ExpectAttention(const FoundStep& step, const std::function<double(size_t, size_t)>& score) {
  constexpr size_t kWidth = 5;
  const size_t begins[] = {0, 2, 5};
  for (size_t sentence = 0; sentence < 2; ++sentence) {
    double sum = 0;
    std::vector<double> context(kWidth);
    for (size_t token = begins[sentence]; token < begins[sentence + 1]; ++token) {
      sum += std::exp(score(sentence, token));
    }
    for (size_t token = begins[sentence]; token < begins[sentence + 1]; ++token) {
      const double weight = std::exp(score(sentence, token)) / sum;
      EXPECT_NEAR(step.weights[token], weight, 1e-6);
      for (size_t i = 0; i < kWidth; ++i) context[i] += weight * step.states[token * kWidth + i];
    }
    for (size_t i = 0; i < kWidth; ++i) {
      EXPECT_NEAR(step.context[sentence * kWidth + i], context[i], 1e-6);
    }
  }
}

TEST(Seq2SeqNetwork, LuongsScoresAreProductsOfStateAndKeys) {
  const FoundStep step = RunStep("luong");
  ExpectAttention(step, [&](size_t sentence, size_t token) {
    double score = 0;
    for (size_t i = 0; i < 5; ++i) score += step.state[5 * sentence + i] * step.keys[5 * token + i];
    return score;
  });
}

TEST(Seq2SeqNetwork, BahdanausScoresAreThoseOfALayerWithTanh) {
  const FoundStep step = RunStep("bahdanau");
  ExpectAttention(step, [&](size_t sentence, size_t token) {
    double score = 0;
    for (size_t i = 0; i < 5; ++i) {
      double sum = step.query_b[i] + step.keys[5 * token + i];
      for (size_t j = 0; j < 5; ++j) sum += step.state[5 * sentence + j] * step.query_w[5 * j + i];
      score += step.attention_v[i] * std::tanh(sum);
    }
    return score;
  });
}

TEST(Seq2SeqNetwork, AStepReadsWhatTheOneBeforeChoseItsTokenBy) {
  Seq2SeqOptions options = Small();
  options.attention = "luong";
  options.input_feeding = true;
  Program program, startup;
  const ProgramGuard guard(&program, &startup);
  const Seq2SeqNetwork network(options);
  const Encoded encoded =
      network.Encode(layers::Data("source", {-1}, DType::kInt64, {.lod_level = 1}));
  Variables before = network.FirstState(encoded);
  ASSERT_THAT(before, SizeIs(2));
  before[1] = layers::Data("fed", {-1, 4});
  const Variable word = network.Embed(layers::Data("word", {-1}, DType::kInt64));
  const Decoded decoded = network.Step(word, before, encoded);
  ASSERT_THAT(decoded.state, SizeIs(2));
  ASSERT_THAT(decoded.outputs, SizeIs(1));
  EXPECT_EQ(decoded.state[1].name(), decoded.outputs[0].name());
  // It is made of the new state and the context.
  EXPECT_EQ(program.root()->FindVar("readout.w")->dims, (std::vector<int64_t>{5 + 2 * 5, 4}));
  Executor executor;
  executor.Run(startup);
  const auto state_after = [&](const std::vector<float>& fed) {
    return executor
        .Run(program,
             {{"source", RaggedTensor<int64_t>({{3, 4}})},
              {"word", Tensor::FromValues<int64_t>({1}, std::vector<int64_t>{3})},
              {"fed", Tensor::FromValues<float>({1, 4}, fed)}},
             {decoded.state[0].name()})[0]
        .ToVector<float>();
  };
  EXPECT_NE(state_after({0, 0, 0, 0}), state_after({0, 0, 0, 1}));
}

// The loss that is trained is the cross-entropy to labels of which a share is uniform; validation
// has the labels as they are.
TEST(Seq2SeqNetwork, SmoothsLabelsInTrainingOnly) {
  constexpr float kSmoothing = 0.3f;
  const FeedList feeds = Feeds({{3, 4, 5}, {6}}, {{3, 4}, {5, 6, 7}});
  Seq2SeqOptions options = Small();
  options.label_smoothing = kSmoothing;
  const training::TrainingProgram built = BuildSeq2Seq(options, {}, 1);
  Program program, startup;
  std::string trained;
  {
    const ProgramGuard guard(&program, &startup);
    trained =
        Seq2SeqLoss(layers::Data(text::PairReader::kSource, {-1}, DType::kInt64, {.lod_level = 1}),
                    layers::Data(text::PairReader::kGiven, {-1}, DType::kInt64, {.lod_level = 1}),
                    layers::Data(text::PairReader::kLabel, {-1, 1}, DType::kInt64), options)
            .name();
  }
  std::string scores_name;
  for (const auto& op : program.root()->ops()) {
    if (op->type == "softmax_with_cross_entropy") scores_name = op->Input("Logits")[0];
  }
  Executor executor;
  executor.Run(*built.startup);
  const std::vector<Tensor> found = executor.Run(program, feeds, {trained, scores_name});
  const std::vector<float> scores = found[1].ToVector<float>();
  const std::vector<int64_t> labels = {3, 4, 1, 5, 6, 7, 1};
  const auto classes = static_cast<size_t>(options.target_tokens);
  double plain = 0, smoothed = 0;
  for (size_t row = 0; row < labels.size(); ++row) {
    const float* x = &scores[row * classes];
    double sum = 0;
    for (size_t c = 0; c < classes; ++c) sum += std::exp(x[c]);
    for (size_t c = 0; c < classes; ++c) {
      const double loss = std::log(sum) - x[c];
      const double is_label = static_cast<int64_t>(c) == labels[row] ? 1 : 0;
      plain += is_label * loss;
      smoothed += ((1 - kSmoothing) * is_label + kSmoothing / static_cast<double>(classes)) * loss;
    }
  }
  const auto count = static_cast<double>(labels.size());
  EXPECT_NEAR(found[0].Item<float>(), smoothed / count, 1e-5);
  EXPECT_NEAR(executor.Run(*built.test, feeds, {built.loss})[0].Item<float>(), plain / count, 1e-5);
  EXPECT_GT(std::abs(smoothed - plain), 1e-3);
}

TEST(Seq2SeqNetwork, RefusesOptionsThatCannotBe) {
  const auto refused = [](const std::function<void(Seq2SeqOptions*)>& set) {
    Seq2SeqOptions options = Small();
    set(&options);
    return InvalidArgumentText([&] { BuildSeq2Seq(options, {}, 1); });
  };
  EXPECT_THAT(refused([](auto* o) { o->hidden = 0; }),
              HasSubstr("hidden = 0, expected at least 1"));
  EXPECT_THAT(refused([](auto* o) { o->layers = 0; }),
              HasSubstr("layers = 0, expected at least 1"));
  EXPECT_THAT(refused([](auto* o) { o->cell = "rnn"; }),
              HasSubstr("cell = \"rnn\", expected gru or lstm"));
  EXPECT_THAT(refused([](auto* o) { o->attention = "dot"; }),
              HasSubstr("attention = \"dot\", expected bahdanau or luong"));
  EXPECT_THAT(refused([](auto* o) { o->decoder = "rnn"; }),
              HasSubstr("decoder = \"rnn\", expected attention_decoder or dynamic_rnn"));
  EXPECT_THAT(refused([](auto* o) { o->input_feeding = true; }),
              HasSubstr("input_feeding with attention = bahdanau, expected attention = luong"));
  EXPECT_THAT(refused([](auto* o) { o->label_smoothing = 1; }),
              HasSubstr("label_smoothing = 1, expected one in [0, 1)"));
}

}  // namespace
}  // namespace skiff::models
