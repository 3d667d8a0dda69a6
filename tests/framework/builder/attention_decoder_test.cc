// AttentionDecoder computes what a DynamicRnn of ordinary layers with the same parameters computes.
#include "framework/builder/attention_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "framework/autodiff/append_backward.h"
#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/dynamic_rnn.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/op/registry.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/error_text.h"
#include "tests/harness/tolerance.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

using Lengths = std::vector<int64_t>;

constexpr int64_t kSize = 5;
constexpr int64_t kWordWidth = 3;
constexpr int64_t kEncodedWidth = 4;

struct Kind {
  std::string cell;
  std::string score;
  std::string attends;
  float forget_bias = 0;
  bool has_query = true;  // else the state is the query
};

std::string NameOf(const Kind& kind) {
  return kind.cell + kind.score + kind.attends + (kind.has_query ? "" : "WithoutQuery");
}

const ParamAttr kWeight = {.name = "weight"};
const ParamAttr kHidden = {.name = "hidden"};
const ParamAttr kBias = {.name = "bias"};
const ParamAttr kQuery = {.name = "query"};
const ParamAttr kQueryBias = {.name = "query_bias"};
const ParamAttr kScore = {.name = "score"};

Variable Product(const Variable& x, int64_t size, const std::string& name) {
  return layers::Fc(x, size, {.param_attr = {.name = name}, .bias_attr = false});
}

// What decoders of both builds read. It goes through parameters, so that it has gradients.
struct Given {
  Variable words;
  Variable encoded;
  Variable keys;
  Variable first;
};

Given ReadFeeds(DType dtype) {
  const layers::DataOptions ragged = {.lod_level = 1};
  const Variable encoded =
      Product(layers::Data("encoded", {-1, kEncodedWidth}, dtype, ragged), kEncodedWidth, "encode");
  return {
      .words = Product(layers::Data("words", {-1, kWordWidth}, dtype, ragged), kWordWidth, "read"),
      .encoded = encoded,
      .keys = Product(encoded, kSize, "keys"),
      .first = layers::Tanh(Product(layers::Data("first", {-1, kSize}, dtype), kSize, "start"))};
}

// Returns [hidden, context].
std::vector<Variable> DecodeByOp(const Kind& kind, const Given& given) {
  layers::AttentionDecoderOptions options = {.size = kSize,
                                             .cell = kind.cell,
                                             .score = kind.score,
                                             .attends = kind.attends,
                                             .initial_hidden = given.first,
                                             .forget_bias = kind.forget_bias,
                                             .param_attr = kWeight,
                                             .hidden_attr = kHidden,
                                             .bias_attr = kBias,
                                             .query_attr = kQuery,
                                             .query_bias_attr = kQueryBias,
                                             .score_attr = kScore};
  if (kind.cell == "lstm") options.initial_cell = given.first;
  if (!kind.has_query) options.query_attr = options.query_bias_attr = false;
  const layers::AttentionDecoderStates states =
      layers::AttentionDecoder(given.words, given.encoded, given.keys, options);
  return {states.hidden, states.context};
}

// How a decoder is written.
enum class Form {
  kOp,
  kLoop,             // of Fluid's ops alone
  kLoopOfAttention,  // of layers::SequenceAttention
};

Variable Attend(const Kind& kind, Form form, const Variable& state, const Variable& encoded,
                const Variable& keys) {
  Variable query = state;
  if (kind.has_query)
    query = layers::Fc(state, kSize, {.param_attr = kQuery, .bias_attr = kQueryBias});
  if (form == Form::kLoopOfAttention) {
    return layers::SequenceAttention(query, keys, encoded,
                                     {.score = kind.score, .score_attr = kScore})
        .context;
  }
  query = layers::SequenceExpandAs(query, keys);
  const Variable scores = kind.score == "dot"
                              ? layers::ReduceSum(query * keys, {.dims = {1}, .keep_dim = true})
                              : Product(layers::Tanh(query + keys), 1, kScore.name);
  const Variable weights = layers::SequenceSoftmax(scores);
  return layers::SequencePool(layers::ElementwiseMul(encoded, weights, {.axis = 0}), "SUM");
}

std::vector<Variable> DecodeByLayers(const Kind& kind, Form form, const Given& given) {
  layers::DynamicRnn decoder;
  decoder.Body([&] {
    const Variable word = decoder.StepInput(given.words);
    const Variable before = decoder.Memory(given.first);
    const Variable encoded = decoder.StaticInput(given.encoded);
    const Variable keys = decoder.StaticInput(given.keys);
    const bool attends_before = kind.attends == "before";
    Variable context, input = word;
    if (attends_before) {
      context = Attend(kind, form, before, encoded, keys);
      input = layers::Concat({word, context}, 1);
    }
    Variable state;
    if (kind.cell == "lstm") {
      const Variable cell = decoder.Memory(given.first);
      const layers::LstmStates next = layers::LstmUnit(
          input, before, cell,
          {.forget_bias = kind.forget_bias, .param_attr = kWeight, .bias_attr = kBias});
      decoder.UpdateMemory(cell, next.cell);
      state = next.hidden;
    } else {
      state = layers::GruUnit(Product(input, 3 * kSize, kWeight.name), before,
                              {.param_attr = kHidden, .bias_attr = kBias});
    }
    decoder.UpdateMemory(before, state);
    if (!attends_before) context = Attend(kind, form, state, encoded, keys);
    decoder.StepOutput(state);
    decoder.StepOutput(context);
  });
  return decoder.Outputs();
}

struct Built {
  std::unique_ptr<Program> main = std::make_unique<Program>();
  std::unique_ptr<Program> startup = std::make_unique<Program>();
  FetchList fetches;  // the loss, hidden, context
  // Of the gradients, which are fetched next.
  std::vector<std::string> parameters;
};

Built Build(const Kind& kind, DType dtype, Form form) {
  Built built;
  built.main->seed = built.startup->seed = 1;
  const ProgramGuard guard(built.main.get(), built.startup.get());
  const Given given = ReadFeeds(dtype);
  const std::vector<Variable> outputs =
      form == Form::kOp ? DecodeByOp(kind, given) : DecodeByLayers(kind, form, given);
  // Squares, so that the outside hands different gradients to the rows.
  const Variable loss =
      layers::Mean(layers::Square(outputs[0])) + layers::Mean(layers::Square(outputs[1]));
  built.fetches = {loss, outputs[0], outputs[1]};
  const BackwardResult result = AppendBackward(DefaultOpRegistry(), built.main.get(), loss.name());
  for (const ParameterGradient& pair : result.parameters) {
    built.parameters.push_back(pair.parameter->name);
    built.fetches.push_back(pair.gradient->name);
  }
  return built;
}

Tensor Numbers(DType dtype, int64_t width, const Lengths& lengths, uint64_t seed) {
  const int64_t rows = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  return harness::ToTensor(harness::Ragged(harness::Uniform({rows, width}, seed), lengths), dtype);
}

FeedList Feeds(DType dtype, const Lengths& words, const Lengths& tokens) {
  const Lengths ones(words.size(), 1);
  Tensor first = Numbers(dtype, kSize, ones, 3);
  first.set_lod({});
  return {{"words", Numbers(dtype, kWordWidth, words, 1)},
          {"encoded", Numbers(dtype, kEncodedWidth, tokens, 2)},
          {"first", first}};
}

class DecoderOfKind : public ::testing::TestWithParam<Kind> {
 protected:
  // Compares outputs and gradients of all forms, on one set of parameters.
  void ExpectSame(DType dtype, double tolerance, const Lengths& words, const Lengths& tokens) {
    for (const Form form : {Form::kOp, Form::kLoopOfAttention}) {
      SCOPED_TRACE(form == Form::kOp ? "op" : "loop of attention");
      ExpectLoop(form, dtype, tolerance, words, tokens);
    }
  }

 private:
  // Compares a form with the loop of Fluid's ops.
  void ExpectLoop(Form form, DType dtype, double tolerance, const Lengths& words,
                  const Lengths& tokens) {
    const Built op = Build(GetParam(), dtype, form);
    const Built layers = Build(GetParam(), dtype, Form::kLoop);
    Executor executor;
    executor.Run(*op.startup);
    const FeedList feeds = Feeds(dtype, words, tokens);
    const std::vector<Tensor> found = executor.Run(*op.main, feeds, op.fetches);
    const std::vector<Tensor> expected = executor.Run(*layers.main, feeds, layers.fetches);
    std::map<std::string, Tensor> gradients;
    for (size_t i = 0; i < layers.parameters.size(); ++i)
      gradients[layers.parameters[i]] = expected[i + 3];
    const auto expect_same = [&](const std::string& name, const Tensor& a, const Tensor& b) {
      EXPECT_EQ(harness::FirstDifference(harness::ToArray(a), harness::ToArray(b), tolerance), "")
          << name;
    };
    expect_same("loss", found[0], expected[0]);
    expect_same("hidden", found[1], expected[1]);
    expect_same("context", found[2], expected[2]);
    ASSERT_EQ(gradients.size(), op.parameters.size());
    for (size_t i = 0; i < op.parameters.size(); ++i) {
      ASSERT_TRUE(gradients.contains(op.parameters[i])) << op.parameters[i];
      expect_same(op.parameters[i], found[i + 3], gradients[op.parameters[i]]);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, DecoderOfKind,
                         ::testing::Values(Kind{"gru", "additive", "before"},
                                           Kind{"lstm", "additive", "before", 1.0f},
                                           Kind{"gru", "dot", "after", 0, false},
                                           Kind{"lstm", "dot", "after", 1.0f, false},
                                           Kind{"lstm", "dot", "before"},
                                           Kind{"gru", "additive", "after"}),
                         [](const auto& info) { return NameOf(info.param); });

TEST_P(DecoderOfKind, IsADynamicRnnInFloat64) {
  ExpectSame(DType::kFloat64, harness::Tolerances::kFloat64, {2, 4, 1, 2}, {3, 1, 5, 2});
}

TEST_P(DecoderOfKind, IsADynamicRnnInFloat32) {
  ExpectSame(DType::kFloat32, harness::Tolerances::kFloat32Gradient, {2, 4, 1, 2}, {3, 1, 5, 2});
}

// Their context is 0.
TEST_P(DecoderOfKind, TakesSentencesWithoutTokens) {
  ExpectSame(DType::kFloat64, harness::Tolerances::kFloat64, {3, 2}, {0, 4});
}

TEST_P(DecoderOfKind, TakesSequencesWithoutWords) {
  ExpectSame(DType::kFloat64, harness::Tolerances::kFloat64, {0, 3, 1}, {2, 1, 3});
}

class AttentionDecoder : public ::testing::Test {
 protected:
  std::map<std::string, std::vector<int64_t>> Parameters() const {
    std::map<std::string, std::vector<int64_t>> dims;
    for (const auto& var : main_.root()->vars()) {
      if (var->is_parameter) dims[var->name] = var->dims;
    }
    return dims;
  }
  std::string Refused(const layers::AttentionDecoderOptions& options) const {
    return InvalidArgumentText([&] { layers::AttentionDecoder(words_, encoded_, keys_, options); });
  }

  Program main_, startup_;
  ProgramGuard guard_{&main_, &startup_};
  Variable words_ = layers::Data("words", {-1, 3}, DType::kFloat32, {.lod_level = 1});
  Variable encoded_ = layers::Data("encoded", {-1, 4}, DType::kFloat32, {.lod_level = 1});
  Variable keys_ = layers::Data("keys", {-1, 6}, DType::kFloat32, {.lod_level = 1});
};

TEST_F(AttentionDecoder, ReturnsRaggedStates) {
  const layers::AttentionDecoderStates states =
      layers::AttentionDecoder(words_, encoded_, keys_, {.size = 5, .cell = "lstm"});
  EXPECT_THAT(states.hidden.dims(), ElementsAre(-1, 5));
  EXPECT_THAT(states.context.dims(), ElementsAre(-1, 4));
  EXPECT_THAT(states.cell.dims(), ElementsAre(-1, 5));
  EXPECT_THAT(states.weights.dims(), ElementsAre(-1));
  EXPECT_EQ(states.hidden.var().lod_level, 1);
}

TEST_F(AttentionDecoder, HasTheParametersOfGruUnit) {
  const layers::AttentionDecoderStates states =
      layers::AttentionDecoder(words_, encoded_, keys_, {.size = 5, .name = "d"});
  EXPECT_FALSE(states.cell.defined());
  using Dims = std::vector<int64_t>;
  EXPECT_THAT(Parameters(), UnorderedElementsAre(testing::Pair("d.w_0", Dims{3 + 4, 15}),
                                                 testing::Pair("d.hidden_w_0", Dims{5, 15}),
                                                 testing::Pair("d.b_0", Dims{1, 15}),
                                                 testing::Pair("d.query_w_0", Dims{5, 6}),
                                                 testing::Pair("d.b_1", Dims{6}),
                                                 testing::Pair("d.score_w_0", Dims{6, 1})));
}

TEST_F(AttentionDecoder, HasTheParametersOfLstmUnit) {
  layers::AttentionDecoder(words_, encoded_, keys_,
                           {.size = 6,
                            .cell = "lstm",
                            .score = "dot",
                            .attends = "after",
                            .bias_attr = false,
                            .query_attr = false,
                            .query_bias_attr = false,
                            .name = "d"});
  EXPECT_THAT(Parameters(), ElementsAre(testing::Pair("d.w_0", std::vector<int64_t>{3 + 6, 24})));
}

TEST_F(AttentionDecoder, WeighsTheTokensOfEachSentence) {
  const layers::AttentionDecoderStates states =
      layers::AttentionDecoder(words_, encoded_, keys_, {.size = 5});
  Executor executor;
  executor.Run(startup_);
  const Tensor weights = executor.Run(main_,
                                      {{"words", Numbers(DType::kFloat32, 3, {2, 1}, 1)},
                                       {"encoded", Numbers(DType::kFloat32, 4, {3, 2}, 2)},
                                       {"keys", Numbers(DType::kFloat32, 6, {3, 2}, 3)}},
                                      {states.weights})[0];
  EXPECT_EQ(weights.lod(), (LoD{{0, 2 * 3, 2 * 3 + 2}}));
  const std::vector<float> found = weights.ToVector<float>();
  EXPECT_NEAR(found[0] + found[1] + found[2], 1, 1e-6);
  EXPECT_NEAR(found[3] + found[4] + found[5], 1, 1e-6);
  EXPECT_NEAR(found[6] + found[7], 1, 1e-6);
  EXPECT_THAT(found, Not(testing::Contains(testing::Le(0.0f))));
}

TEST_F(AttentionDecoder, RefusesOptionsThatCannotBe) {
  const Variable state = layers::Data("state", {-1, 5});
  EXPECT_THAT(Refused({}), HasSubstr("attention_decoder: size = 0, expected at least 1"));
  EXPECT_THAT(Refused({.size = 5, .cell = "rnn"}),
              HasSubstr("cell = \"rnn\", expected gru or lstm"));
  EXPECT_THAT(Refused({.size = 5, .score = "general"}),
              HasSubstr("score = \"general\", expected additive or dot"));
  EXPECT_THAT(Refused({.size = 5, .attends = "never"}),
              HasSubstr("attends = \"never\", expected before or after"));
  EXPECT_THAT(Refused({.size = 5, .initial_cell = state}),
              HasSubstr("found an initial_cell, expected none for cell = gru"));
  EXPECT_THAT(Refused({.size = 5, .forget_bias = 1}),
              HasSubstr("forget_bias = 1, expected 0 for cell = gru"));
  EXPECT_THAT(Parameters(), IsEmpty());
}

TEST_F(AttentionDecoder, RefusesShapesThatDoNotFit) {
  EXPECT_THAT(
      InvalidArgumentText([&] {
        layers::AttentionDecoder(words_, layers::Data("cube", {-1, 2, 2}), keys_, {.size = 5});
      }),
      HasSubstr("input \"cube\" has the shape [-1, 2, 2], expected [rows, width]"));
  // Without a matrix for queries, keys must be as wide as the state.
  EXPECT_THAT(Refused({.size = 5, .query_attr = false, .query_bias_attr = false}),
              HasSubstr("Keys"));
  EXPECT_THAT(Refused({.size = 5, .initial_hidden = layers::Data("wide", {-1, 7})}),
              HasSubstr("H0"));
}

}  // namespace
}  // namespace skiff
