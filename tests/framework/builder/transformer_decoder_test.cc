#include "framework/builder/transformer_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/plan/plan.h"
#include "tests/framework/builder/builder_fixture.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

class TransformerDecoderTest : public BuilderTest {
 protected:
  // The types of the ops of a decoder that aren't products, biases or gelu.
  std::vector<std::string> OpsOf(const layers::TransformerDecoderOptions& options) {
    layers::TransformerDecoder(tokens_, options);
    std::vector<std::string> types;
    for (const auto& op : main_.root()->ops()) {
      const std::string& type = op->type;
      const bool is_bias = type == "elementwise_add" && op->Input("Y")[0].ends_with(".b_0");
      if (type != "mul" && type != "gelu" && !is_bias) types.push_back(type);
    }
    return types;
  }

  Variable tokens_ = layers::Data("tokens", {-1, 7, 12});
};

TEST_F(TransformerDecoderTest, AttendsToTokensBefore) {
  EXPECT_THAT(OpsOf({.heads = 3}), ElementsAre("multihead_attention", "elementwise_add",
                                               "layer_norm", "elementwise_add", "layer_norm"));
  const auto& ops = main_.root()->ops();
  const auto attention =
      std::ranges::find_if(ops, [](const auto& op) { return op->type == "multihead_attention"; });
  EXPECT_TRUE((*attention)->Attr<bool>("causal"));
}

TEST_F(TransformerDecoderTest, AttendsToTheMemory) {
  const Variable memory = layers::Data("memory", {-1, 5, 8});
  const Variable lengths = layers::Data("lengths", {-1}, DType::kInt64);
  layers::TransformerDecoder(
      tokens_, {.heads = 3, .memory = memory, .memory_lengths = lengths, .name = "decoder"});
  EXPECT_THAT(ParameterNames(), Contains("decoder_layer_0_cross_att_key_fc.w_0"));
  EXPECT_THAT(ParameterNames(), Contains("decoder_layer_0_post_cross_att_layer_norm_scale"));
  EXPECT_THAT(main_.root()->FindVar("decoder_layer_0_cross_att_key_fc.w_0")->dims,
              ElementsAre(8, 12));
}

TEST_F(TransformerDecoderTest, IsLlamas) {
  EXPECT_THAT(OpsOf({.heads = 3,
                     .act = "swish",
                     .gated = true,
                     .rotary = true,
                     .normalize_first = true,
                     .norm = "rms_norm",
                     .bias_attr = std::nullopt}),
              ElementsAre("rms_norm", "rotary_embedding", "rotary_embedding", "multihead_attention",
                          "elementwise_add", "rms_norm", "swish", "elementwise_mul",
                          "elementwise_add", "rms_norm"));
}

TEST_F(TransformerDecoderTest, HasTheParametersOfTheEncoder) {
  layers::TransformerDecoder(tokens_, {.heads = 3, .gated = true, .packed = true, .name = "gpt"});
  EXPECT_THAT(
      ParameterNames(),
      ElementsAre(
          "gpt_layer_0_multi_head_att_qkv_fc.w_0", "gpt_layer_0_multi_head_att_qkv_fc.b_0",
          "gpt_layer_0_multi_head_att_output_fc.w_0", "gpt_layer_0_multi_head_att_output_fc.b_0",
          "gpt_layer_0_post_att_layer_norm_scale", "gpt_layer_0_post_att_layer_norm_bias",
          "gpt_layer_0_ffn_fc_0.w_0", "gpt_layer_0_ffn_fc_0.b_0", "gpt_layer_0_ffn_fc_gate.w_0",
          "gpt_layer_0_ffn_fc_gate.b_0", "gpt_layer_0_ffn_fc_1.w_0", "gpt_layer_0_ffn_fc_1.b_0",
          "gpt_layer_0_post_ffn_layer_norm_scale", "gpt_layer_0_post_ffn_layer_norm_bias"));
}

TEST_F(TransformerDecoderTest, RefusesBadOptions) {
  const auto expect = [&](const layers::TransformerDecoderOptions& options,
                          const std::string& message) {
    EXPECT_THAT(InvalidArgumentText([&] { layers::TransformerDecoder(tokens_, options); }),
                HasSubstr(message));
    EXPECT_TRUE(main_.root()->ops().empty());
  };
  expect({.layers = 0}, "transformer_decoder: layers = 0, expected at least 1");
  expect({.feed_forward = -1}, "feed_forward = -1, expected no negative number");
  expect({.dropout = 1.0f}, "dropout = 1 is outside [0, 1)");
  expect({.norm = "batch_norm"}, "norm = \"batch_norm\", expected layer_norm or rms_norm");
  expect({.layers = 2, .cache = {tokens_, tokens_}},
         "2 variables of a cache for 2 layers, expected keys and values of each");
  expect({.cache = {tokens_, tokens_}}, "a cache without positions");
  expect({.memory_lengths = tokens_}, "memory_lengths without a memory");
}

// ---- training and generation

constexpr int64_t kLetters = 11;
constexpr int64_t kWidth = 16;
constexpr int64_t kLayers = 2;
constexpr int64_t kCapacity = 20;

// The logits of the next letter after each of `ids`. What isn't set comes from the caller's
// options.
Variable LogitsOf(const Variable& ids, const Variable& positions,
                  layers::TransformerDecoderOptions options) {
  Variable x =
      layers::Embedding(ids, {.rows = kLetters, .width = kWidth, .name = "letter_embedding"});
  if (!options.rotary) {
    x = x + layers::PositionEmbedding(ids, {.rows = kCapacity,
                                            .width = kWidth,
                                            .positions = positions,
                                            .name = "position_embedding"});
  }
  options.layers = kLayers;
  options.heads = 4;
  options.positions = positions;
  options.name = "decoder";
  x = layers::TransformerDecoder(x, options);
  return layers::Fc(x, kLetters, {.num_flatten_dims = 2, .name = "logits"});
}

// A program for whole sequences, one that trains on them and one that goes on with a cache, on the
// same parameters.
class Model {
 public:
  // `sequences`: at a time, in generation. Trains with a learning rate unless that is 0.
  Model(const layers::TransformerDecoderOptions& options, int64_t sequences, float rate = 0) {
    {
      const ProgramGuard guard(&whole_, &startup_);
      const Variable ids = layers::Data("ids", {-1, -1}, DType::kInt64);
      whole_logits_ = LogitsOf(ids, {}, WithMemory(options)).name();
    }
    if (rate > 0) {
      const ProgramGuard guard(&train_, &startup_);
      const Variable ids = layers::Data("ids", {-1, -1}, DType::kInt64);
      const Variable label = layers::Data("label", {-1, -1, 1}, DType::kInt64);
      const Variable loss =
          layers::Mean(layers::SoftmaxWithCrossEntropy(LogitsOf(ids, {}, options), label));
      loss_ = loss.name();
      optimizer::Adam({.learning_rate = rate}).Minimize(loss);
    }
    const ProgramGuard guard(&generation_, &startup_);
    const Variable ids = layers::Data("ids", {sequences, -1}, DType::kInt64);
    const Variable length = layers::Data("length", {sequences}, DType::kInt64);
    layers::TransformerDecoderOptions cached = WithMemory(options);
    cached.cache = layers::KeyValueCache(
        {.layers = kLayers, .sequences = sequences, .capacity = kCapacity, .width = kWidth});
    const Variable positions = layers::TokenPositions(ids, {.start = length, .limit = kCapacity});
    next_logits_ = LogitsOf(ids, positions, cached).name();
    executor_.Run(startup_);
  }

  // Logits [N, L, letters] of ids [N, L].
  std::vector<float> WholeLogits(const Tensor& ids) {
    return executor_.Run(whole_, WithMemory({{"ids", ids}}), {whole_logits_})[0].ToVector<float>();
  }
  std::vector<float> NextLogits(const Tensor& ids, const std::vector<int64_t>& lengths) {
    const FeedList feeds = {
        {"ids", ids}, {"length", Tensor::FromValues<int64_t>({std::ssize(lengths)}, lengths)}};
    return generation_step().Run(WithMemory(feeds), {next_logits_})[0].ToVector<float>();
  }
  // Trains on ids [N, L], whose next ones are `label` [N, L, 1]; returns the loss before.
  float Train(const Tensor& ids, const Tensor& label) {
    if (!train_step_) train_step_.emplace(executor_.Compile(train_));
    return train_step_->Run({{"ids", ids}, {"label", label}}, {loss_})[0].Item<float>();
  }

  // Memory that the decoder attends to, of two sequences; none by default.
  void SetMemory(const Tensor& memory, const Tensor& lengths) { memory_ = {memory, lengths}; }

  CompiledProgram& generation_step() {
    if (!generation_step_) generation_step_.emplace(executor_.Compile(generation_));
    return *generation_step_;
  }
  const std::string& next_logits() const { return next_logits_; }

 private:
  static layers::TransformerDecoderOptions WithMemory(layers::TransformerDecoderOptions options) {
    if (options.name != "with_memory") return options;
    options.memory = layers::Data("memory", {2, 3, 5});
    options.memory_lengths = layers::Data("memory_lengths", {2}, DType::kInt64);
    return options;
  }
  FeedList WithMemory(FeedList feeds) const {
    if (!memory_.empty()) {
      feeds.emplace_back("memory", memory_[0]);
      feeds.emplace_back("memory_lengths", memory_[1]);
    }
    return feeds;
  }

  Program whole_, train_, generation_, startup_;
  std::string whole_logits_, next_logits_, loss_;
  std::vector<Tensor> memory_;
  Executor executor_;
  std::optional<CompiledProgram> train_step_, generation_step_;
};

// Letters [begin, end) of each of two sequences.
Tensor Letters(const std::vector<std::vector<int64_t>>& sequences, int64_t begin, int64_t end) {
  std::vector<int64_t> ids;
  for (const std::vector<int64_t>& sequence : sequences)
    ids.insert(ids.end(), sequence.begin() + begin, sequence.begin() + end);
  return Tensor::FromValues<int64_t>({std::ssize(sequences), end - begin}, ids);
}

// Rows [begin, end) of each of two sequences of 9.
std::vector<float> Rows(const std::vector<float>& logits, int64_t begin, int64_t end) {
  std::vector<float> rows;
  for (int64_t n = 0; n < 2; ++n) {
    const auto first = logits.begin() + n * 9 * kLetters;
    rows.insert(rows.end(), first + begin * kLetters, first + end * kLetters);
  }
  return rows;
}

const std::vector<std::vector<int64_t>>& TwoSequences() {
  static const std::vector<std::vector<int64_t>> sequences = {{3, 1, 4, 1, 5, 9, 2, 6, 5},
                                                              {2, 7, 1, 8, 2, 8, 1, 8, 10}};
  return sequences;
}

// Feeds a prompt of three letters, then one or two at a time.
void ExpectTheLogitsOfTheWhole(Model* model) {
  const std::vector<float> whole = model->WholeLogits(Letters(TwoSequences(), 0, 9));
  const std::vector<int64_t> cuts = {0, 3, 4, 5, 7, 9};
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    SCOPED_TRACE(cuts[i]);
    const std::vector<float> next =
        model->NextLogits(Letters(TwoSequences(), cuts[i], cuts[i + 1]), {cuts[i], cuts[i]});
    EXPECT_THAT(next, Pointwise(FloatNear(1e-5f), Rows(whole, cuts[i], cuts[i + 1])));
  }
}

TEST(Generation, HasTheLogitsOfTheWholeSequence) {
  Model model({.normalize_first = true}, 2);
  ExpectTheLogitsOfTheWhole(&model);
  // Another sequence begins in the same cache.
  ExpectTheLogitsOfTheWhole(&model);
}

TEST(Generation, HasTheLogitsOfLlama) {
  for (const bool packed : {false, true}) {
    for (const bool interleaved : {false, true}) {
      Model model({.act = "swish",
                   .gated = true,
                   .rotary = true,
                   .rotary_interleaved = interleaved,
                   .packed = packed,
                   .normalize_first = true,
                   .norm = "rms_norm",
                   .bias_attr = std::nullopt},
                  2);
      ExpectTheLogitsOfTheWhole(&model);
    }
  }
}

TEST(Generation, AttendsToTheMemory) {
  Model model({.name = "with_memory"}, 2);
  std::vector<float> memory(30);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = std::sin(static_cast<float>(i));
  model.SetMemory(Tensor::FromValues<float>({2, 3, 5}, memory),
                  Tensor::FromValues<int64_t>({2}, {3, 1}));
  ExpectTheLogitsOfTheWhole(&model);
}

// A sequence of a batch may be shorter than another, or go back: its length says where.
TEST(Generation, KeepsAPositionForEachSequence) {
  Model model({}, 2);
  const std::vector<float> whole = model.WholeLogits(Letters(TwoSequences(), 0, 9));
  model.NextLogits(Letters(TwoSequences(), 0, 6), {0, 0});
  const auto& [first, second] = std::tie(TwoSequences()[0], TwoSequences()[1]);
  const std::vector<float> next =
      model.NextLogits(Tensor::FromValues<int64_t>({2, 1}, {first[6], second[3]}), {6, 3});
  std::vector<float> expected(whole.begin() + 6 * kLetters, whole.begin() + 7 * kLetters);
  expected.insert(expected.end(), whole.begin() + 12 * kLetters, whole.begin() + 13 * kLetters);
  EXPECT_THAT(next, Pointwise(FloatNear(1e-5f), expected));
}

TEST(Generation, RefusesMoreThanTheCacheHolds) {
  Model model({}, 2);
  EXPECT_THAT(ErrorText(ErrorCode::kOutOfRange,
                        [&] {
                          model.NextLogits(Letters(TwoSequences(), 0, 2), {18, 19});
                        }),
              HasSubstr("Start[1] is 19, expected 0 to 18 for 2 tokens at positions below 20"));
}

// A step that fails would leave the cache as it was. It fails before it writes, so that it needs no
// copies of the cache.
TEST(Generation, WritesTheCacheInPlace) {
  Model model({}, 2);
  BoundProgram step =
      model.generation_step().Bind({{"ids", Letters(TwoSequences(), 0, 1)},
                                    {"length", Tensor::FromValues<int64_t>({2}, {0, 0})}},
                                   {model.next_logits()});
  step.Step();
  EXPECT_EQ(step.statistics().rollback_bytes, 0);
  int64_t writes = 0;
  for (const Instruction& instruction : step.plan().instructions) {
    if (!instruction.op || instruction.op->type != "write_to_cache") continue;
    EXPECT_EQ(step.plan()[instruction.OutputIn("Out")].storage, Storage::kScope);
    ++writes;
  }
  EXPECT_EQ(writes, 2 * kLayers);
}

TEST(Generation, WritesTheTextThatTheModelWasTrainedOn) {
  const std::vector<int64_t> text = {0, 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2};
  Model model({.normalize_first = true}, 1, 0.01f);
  const auto length = std::ssize(text) - 1;
  const Tensor ids =
      Tensor::FromValues<int64_t>({1, length}, std::vector(text.begin(), text.end() - 1));
  const Tensor label =
      Tensor::FromValues<int64_t>({1, length, 1}, std::vector(text.begin() + 1, text.end()));
  const float first_loss = model.Train(ids, label);
  EXPECT_GT(first_loss, 1.5f);
  float loss = first_loss;
  for (int step = 0; step < 100; ++step) loss = model.Train(ids, label);
  EXPECT_LT(loss, 0.1f);
  std::vector<int64_t> written = {text[0]};
  while (written.size() < text.size()) {
    const std::vector<float> logits = model.NextLogits(
        Tensor::FromValues<int64_t>({1, 1}, {written.back()}), {std::ssize(written) - 1});
    written.push_back(std::ranges::max_element(logits) - logits.begin());
  }
  EXPECT_EQ(written, text);
}

}  // namespace
}  // namespace skiff
