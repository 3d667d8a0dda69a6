// What RewriteToHalf makes of networks: rewrites/<name>.txt has the text of each rewritten program.
// A test that fails prints the text that it found.
#include "framework/precision/half_rewrite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "framework/analysis/verifier.h"
#include "framework/builder/activation.h"
#include "framework/builder/attention.h"
#include "framework/builder/data.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/sequence.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/ir/master_name.h"
#include "framework/ir/text.h"
#include "tests/framework/builder/builder_fixture.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

class HalfRewriteTest : public BuilderTest {
 protected:
  HalfReport Rewrite(const Variable& loss) {
    return RewriteToHalf(DefaultOpRegistry(), options_, {loss.name()}, &main_, &startup_);
  }

  // Rewrites, and compares the text with the file's.
  void ExpectGolden(const Variable& loss, const std::string& name) {
    Rewrite(loss);
    const std::string text = Text();
    std::string golden;
    try {
      golden = ReadFile("tests/framework/precision/rewrites/" + name + ".txt");
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
    EXPECT_EQ(text, golden) << "found:\n" << text << "---- end of " << name;
    EXPECT_EQ(VerifyProgram(DefaultOpRegistry(), main_), std::vector<std::string>());
    EXPECT_EQ(VerifyProgram(DefaultOpRegistry(), startup_), std::vector<std::string>());
  }

  // Without the lines of this file that made the ops.
  std::string Text() const {
    for (size_t i = 0; i < main_.block_count(); ++i) {
      for (const auto& op : main_.block(static_cast<int32_t>(i))->ops()) op->site = {};
    }
    return PrintProgram(main_);
  }

  PrecisionOptions options_{.dtype = DType::kBFloat16};
};

TEST_F(HalfRewriteTest, ResidualNetwork) {
  const Variable image = layers::Data("image", {-1, 3, 8, 8});
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  const auto norm = [](const Variable& x, int64_t filters) {
    return layers::BatchNorm(
        layers::Conv2d(x, {.filters = filters, .kernel = 3, .padding = 1, .bias_attr = false}));
  };
  const Variable first = layers::Relu(norm(image, 4));
  const Variable second = layers::Relu(norm(first, 4) + first);
  const Variable pooled = layers::Pool2d(second, {.type = "avg", .global = true});
  const Variable loss = layers::Mean(
      layers::SoftmaxWithCrossEntropy(layers::Fc(pooled, 10, {.num_flatten_dims = 1}), label));
  ExpectGolden(loss, "residual_network");
}

TEST_F(HalfRewriteTest, Transformer) {
  const Variable words = layers::Data("words", {-1, 6}, DType::kInt64);
  const Variable is_token = layers::Data("is_token", {-1, 6});
  const Variable mask = layers::PaddingMask(is_token);
  const Variable x = layers::Embedding(words, {.rows = 20, .width = 8});
  const Variable attention = layers::Attention(x, {.heads = 2, .dropout = 0.1f, .mask = mask});
  const Variable sum = layers::LayerNorm(attention + x, {.begin_norm_axis = 2});
  const Variable hidden = layers::Fc(sum, 16, {.num_flatten_dims = 2, .act = "gelu"});
  const Variable loss = layers::Mean(layers::Fc(hidden, 1, {.num_flatten_dims = 1}));
  ExpectGolden(loss, "transformer");
}

// The hidden state becomes half, the cell stays float32, and so does what feeds alone make: the
// joined step.
TEST_F(HalfRewriteTest, LstmLoop) {
  const Variable xs = layers::Data("xs", {5, 3, 8});
  const Variable factor = layers::Data("factor", {3, 4});
  const Variable zeros = layers::FillConstant({3, 4}, DType::kFloat32, 0.0);
  layers::StaticRnn rnn;
  rnn.Body([&] {
    const Variable x = rnn.StepInput(xs);
    const Variable hidden = rnn.Memory(zeros);
    const Variable cell = rnn.Memory(zeros);
    const layers::LstmStates next =
        layers::LstmUnit(layers::Fc(layers::Concat({x, factor}, 1), 4), hidden, cell);
    rnn.UpdateMemory(hidden, next.hidden);
    rnn.UpdateMemory(cell, next.cell);
    rnn.StepOutput(next.hidden);
  });
  const Variable loss = layers::Mean(layers::Fc(rnn.Outputs()[0], 1, {.num_flatten_dims = 2}));
  ExpectGolden(loss, "lstm_loop");
}

TEST_F(HalfRewriteTest, SharedEmbedding) {
  const Variable words = layers::Data("words", {-1, 6}, DType::kInt64);
  const Variable x =
      layers::Embedding(words, {.rows = 20, .width = 8, .param_attr = {.name = "table"}});
  const Variable hidden = layers::Fc(x, 8, {.num_flatten_dims = 2, .act = "tanh"});
  const Variable table(main_.root(), "table");
  const Variable logits = layers::MatMul(hidden, table, {.transpose_y = true});
  ExpectGolden(layers::Mean(layers::Softmax(logits)), "shared_embedding");
}

TEST_F(HalfRewriteTest, SparseRows) {
  const Variable words = layers::Data("words", {-1, 1}, DType::kInt64);
  const Variable x = layers::Embedding(
      words, {.rows = 20, .width = 8, .is_sparse = true, .param_attr = {.name = "table"}});
  ExpectGolden(layers::Mean(layers::Fc(x, 4, {.num_flatten_dims = 1, .act = "relu"})),
               "sparse_rows");
}

TEST_F(HalfRewriteTest, RoundsParametersOnceInEachRunWithCasts) {
  options_.level = PrecisionLevel::kCasts;
  const Variable x = layers::Data("x", {-1, 8});
  const Variable hidden = layers::Fc(x, 8, {.param_attr = {.name = "w"}});
  const Variable w(main_.root(), "w");
  ExpectGolden(layers::Mean(layers::MatMul(hidden, w)), "casts");
}

TEST_F(HalfRewriteTest, ReportsWhatItHasDone) {
  const Variable x = layers::Data("x", {-1, 8});
  const Variable loss = layers::Mean(layers::Softmax(layers::Fc(x, 4)));
  EXPECT_EQ(Rewrite(loss).Text(),
            "bfloat16: 2 of 4 ops, 2 of 2 parameters, 2 casts; float32 by their rules: mean (1), "
            "softmax (1)");
}

TEST_F(HalfRewriteTest, SaysWhyOpsAndParametersStayFloat32AndWhatIsCastForWhom) {
  const Variable x = layers::Data("x", {-1, 8});
  const Variable w = layers::CreateParameter({8, 8}, DType::kFloat32, {.name = "w"});
  const Variable hidden = layers::MatMul(x, w);
  const Variable large = layers::Relu(layers::Concat({layers::Tanh(x) + hidden, hidden}, 1));
  const Variable read = layers::ReduceSum(layers::Exp(w));
  const Variable loss = layers::Mean(layers::Sigmoid(large)) + read;
  options_.keep_float32 = {"sigmoid"};
  const HalfReport report = Rewrite(loss);
  EXPECT_EQ(report.Details(),
            "bfloat16: 1 of 10 ops, 0 of 1 parameters, 3 casts; float32 by their rules: exp (1), "
            "mean (1), reduce_sum (1); like their inputs: concat (1), elementwise_add (2), relu "
            "(1), tanh (1); as you asked: sigmoid (1)\n"
            "float32: tanh, since its input \"x\" is float32 and none of the others is larger\n"
            "float32: elementwise_add, since its input \"tanh_0.tmp_0\" is float32 and none of "
            "the others is larger\n"
            "float32: concat, since its input \"elementwise_add_0.tmp_0\" is float32 and none of "
            "the others is larger\n"
            "float32: relu, since its input \"concat_0.tmp_0\" is float32 and none of the others "
            "is larger\n"
            "float32: exp, since its rule is to compute in float32\n"
            "float32: reduce_sum, since its rule is to compute in float32\n"
            "float32: sigmoid, since keep_float32 has it\n"
            "float32: mean, since its rule is to compute in float32\n"
            "float32: elementwise_add, since its input \"reduce_sum_0.tmp_0\" is float32 and none "
            "of the others is larger\n"
            "float32: parameter \"w\", since exp reads it so\n"
            "cast: \"x\" to bfloat16 for matmul_v2\n"
            "cast: \"w\" to bfloat16 for matmul_v2\n"
            "cast: \"matmul_0.tmp_0\" to float32 for elementwise_add\n");
}

// An op that names its dtype is as the user wrote it.
TEST_F(HalfRewriteTest, LeavesTheDTypesThatAttributesName) {
  const Variable x = layers::Data("x", {-1, 8});
  const Variable hidden = layers::Fc(x, 4);
  const Variable sum = layers::ReduceSum(hidden);
  Op& reduction = *main_.root()->ops().back();
  ASSERT_EQ(reduction.type, "reduce_sum");
  reduction.SetAttr("out_dtype", static_cast<int32_t>(DType::kFloat32));
  // A product would read a half sum, too.
  const HalfReport report = Rewrite(layers::Mean(layers::MatMul(hidden * sum, hidden)));
  ASSERT_FALSE(report.float32_ops.empty());
  EXPECT_EQ(report.float32_ops[0].type, "reduce_sum");
  EXPECT_EQ(report.float32_ops[0].reason, Float32Reason::kNamed);
  EXPECT_EQ(report.float32_ops[0].name, "out_dtype");
}

// The bits of a master are those of the float32 program, and the parameter is the master, rounded.
TEST_F(HalfRewriteTest, InitializesMastersAsTheFloat32Program) {
  const Variable x = layers::Data("x", {-1, 8});
  const Variable loss = layers::Mean(layers::Fc(x, 4, {.param_attr = {.name = "w"}}));
  Executor plain(Place::Cpu());
  plain.Run(startup_, {}, {});
  const std::vector<float> expected = plain.scope().Get("w").ToVector<float>();
  Rewrite(loss);
  Executor executor(Place::Cpu());
  executor.Run(startup_, {}, {});
  EXPECT_EQ(executor.scope().Get(MasterName("w")).ToVector<float>(), expected);
  EXPECT_EQ(executor.scope().Get("w").dtype(), DType::kBFloat16);
}

// Nobody updates parameters there, so they have no master weights.
TEST_F(HalfRewriteTest, RewritesForInference) {
  const Variable x = layers::Data("x", {-1, 8});
  const Variable y = layers::Fc(x, 4, {.param_attr = {.name = "w"}});
  options_.keep_float32 = {"an op of the training"};
  RewriteForInference(DefaultOpRegistry(), options_, {y.name()}, &main_);
  EXPECT_EQ(main_.root()->GetVar("w")->dtype, DType::kBFloat16);
  EXPECT_EQ(main_.root()->FindVar(MasterName("w")), nullptr);
  EXPECT_EQ(main_.root()->GetVar(y.name())->dtype, DType::kFloat32);
  EXPECT_EQ(startup_.root()->GetVar("w")->dtype, DType::kFloat32);
}

TEST_F(HalfRewriteTest, LeavesTheProgramsAsTheyAreAfterAnError) {
  const Variable x = layers::Data("x", {-1, 8});
  const Variable loss = layers::Mean(layers::Fc(x, 4));
  const std::unique_ptr<Program> main = main_.Clone();
  const std::unique_ptr<Program> startup = startup_.Clone();
  options_.keep_float32 = {"nothing"};
  EXPECT_NE(ErrorText([&] { Rewrite(loss); }), "");
  EXPECT_TRUE(main_ == *main);
  EXPECT_TRUE(startup_ == *startup);
  // Minimize rewrites first. What it refuses later leaves no trace of that.
  EXPECT_NE(ErrorText([&] {
              optimizer::Sgd({.learning_rate = 0.1})
                  .Minimize(loss,
                            {.parameters = {"absent"}, .precision = {.dtype = DType::kBFloat16}});
            }),
            "");
  EXPECT_TRUE(main_ == *main);
  EXPECT_TRUE(startup_ == *startup);
}

TEST_F(HalfRewriteTest, TrainsInHalfAsInFloat32) {
  const Tensor x = [] {
    std::vector<float> values(32);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = std::sin(static_cast<float>(i));
    }
    return Tensor::FromValues<float>({4, 8}, values);
  }();
  const auto losses = [&](const PrecisionOptions& precision) {
    Program main, startup;
    const ProgramGuard guard(&main, &startup);
    startup.seed = 5;
    const Variable feed = layers::Data("x", {-1, 8});
    const Variable hidden = layers::Fc(feed, 16, {.act = "tanh"});
    const Variable out = layers::Fc(hidden, 1);
    const Variable loss = layers::Mean(layers::Square(out + -1.0));
    optimizer::Adam({.learning_rate = 0.01}).Minimize(loss, {.precision = precision});
    Executor executor(Place::Cpu());
    executor.Run(startup, {}, {});
    CompiledProgram compiled = executor.Compile(main);
    std::vector<float> values;
    for (int i = 0; i < 20; ++i) {
      values.push_back(compiled.Run({{"x", x}}, {loss.name()})[0].Item<float>());
    }
    return values;
  };
  const std::vector<float> plain = losses({});
  for (const PrecisionLevel level : {PrecisionLevel::kParameters, PrecisionLevel::kCasts}) {
    for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
      // A scale at which no gradient overflows: a step that is skipped would be behind.
      const std::vector<float> half =
          losses({.dtype = dtype, .level = level, .loss_scaling = LossScaling{.initial = 1024}});
      for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(half[i], plain[i], 0.03f * plain[0]);
      EXPECT_LT(half.back(), 0.7f * half.front());
    }
  }
}

// Casts of a cache would take longer than a step of generation.
TEST_F(HalfRewriteTest, KeepsCachesOfGenerationInHalf) {
  const Variable x = layers::Data("x", {1, 2, 8});
  const Variable length = layers::Data("length", {1}, DType::kInt64);
  const std::vector<Variable> cache = layers::KeyValueCache({.capacity = 64, .width = 8});
  const Variable y =
      layers::Attention(x, {.heads = 2,
                            .positions = layers::TokenPositions(x, {.start = length, .limit = 64}),
                            .cache = cache});
  Executor executor(Place::Cpu());
  executor.Run(startup_);
  const auto run = [&] {
    std::vector<float> found;
    for (int64_t start = 0; start < 6; start += 2) {
      const FeedList feeds = {
          {"x", Tensor::FromValues<float>(
                    {1, 2, 8}, std::vector<float>(16, 0.25f * static_cast<float>(start + 1)))},
          {"length", Tensor::FromValues<int64_t>({1}, {start})}};
      for (const float number : executor.Run(main_, feeds, {y})[0].ToVector<float>()) {
        found.push_back(number);
      }
    }
    return found;
  };
  const std::vector<float> in_float32 = run();
  RewriteForInference(DefaultOpRegistry(), options_, {y.name()}, &main_);
  for (const Variable& kept : cache) {
    EXPECT_EQ(main_.root()->GetVar(kept.name())->dtype, options_.dtype);
    for (const auto& op : main_.root()->ops()) {
      EXPECT_FALSE(op->type == "cast" && op->Input("X")[0] == kept.name());
    }
    executor.scope().Set(kept.name(), Tensor({1, 64, 8}, options_.dtype));
  }
  for (const auto& var : main_.root()->vars()) {
    if (!var->is_parameter) continue;
    Program cast, unused;
    const ProgramGuard guard(&cast, &unused);
    cast.root()->CreateVar({.name = "from", .dims = var->dims});
    const Variable to = layers::Cast({cast.root(), "from"}, var->dtype);
    executor.scope().Set(var->name,
                         executor.Run(cast, {{"from", executor.scope().Get(var->name)}}, {to})[0]);
  }
  const std::vector<float> in_half = run();
  for (size_t i = 0; i < in_half.size(); ++i) EXPECT_NEAR(in_half[i], in_float32[i], 0.02f) << i;
}

}  // namespace
}  // namespace skiff
