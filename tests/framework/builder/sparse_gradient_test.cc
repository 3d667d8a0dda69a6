// Tables whose gradient is selected rows against the same with a dense one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "framework/analysis/verifier.h"
#include "framework/autodiff/append_backward.h"
#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/gradient_ops.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/ir/codec.h"
#include "framework/ir/text.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kRows = 7;
constexpr int64_t kWidth = 3;

FeedList Ids() {
  return {{"ids", Tensor::FromValues<int64_t>({2, 3}, {4, 0, 4, 6, 4, 1})},
          {"more", Tensor::FromValues<int64_t>({2}, {0, 5})}};
}

struct Model {
  bool is_sparse = false;
  bool is_read_twice = false;    // by ids of two feeds
  bool is_read_densely = false;  // by an op that isn't a lookup, too
  std::optional<int64_t> padding_idx = {};
  GradientClip clip = {};
  Regularizer regularizer = {};
};

// The sum of the squares of the rows looked up, each weighted by its place; the table is called
// "w".
Variable Loss(const Model& model) {
  std::vector<float> start;
  for (int i = 0; i < kRows * kWidth; ++i) start.push_back(0.1f * static_cast<float>(i) - 0.9f);
  const layers::EmbeddingOptions table = {
      .rows = kRows,
      .width = kWidth,
      .padding_idx = model.padding_idx,
      .is_sparse = model.is_sparse,
      .param_attr = {.name = "w", .initializer = initializer::FromArray(start)}};
  const Variable found = layers::Embedding(layers::Data("ids", {2, 3}, DType::kInt64), table);
  std::vector<float> weights;
  for (int i = 0; i < 2 * 3 * kWidth; ++i) weights.push_back(0.05f * static_cast<float>(i % 11));
  Variable loss =
      layers::ReduceSum(layers::Square(found) * layers::AssignValue({2, 3, 3}, weights));
  const Variable more = layers::Data("more", {2}, DType::kInt64);
  if (model.is_read_twice)
    loss = loss + layers::ReduceSum(layers::Exp(layers::Embedding(more, table)));
  if (model.is_read_densely) {
    loss = loss + layers::ReduceSum(layers::Tanh(Variable(DefaultMainProgram().root(), "w")));
  }
  return loss;
}

struct Trained {
  Tensor gradient;  // of the table, after clip and regularization
  Tensor dense;     // the dense tensor it represents
  std::shared_ptr<Program> program = std::make_shared<Program>();
};

Trained GradientOf(const Model& model, const CompileOptions& options = {}) {
  Trained trained;
  Program startup;
  const ProgramGuard guard(trained.program.get(), &startup);
  const Variable loss = Loss(model);
  Block* root = trained.program->root();
  const BackwardResult result =
      AppendBackward(DefaultOpRegistry(), trained.program.get(), loss.name());
  std::vector<NamedGradient> gradients;
  for (const ParameterGradient& pair : result.parameters) {
    gradients.push_back({pair.parameter, Variable(root, pair.gradient->name), pair.parameter});
  }
  const auto site = std::source_location::current();
  AppendClip(model.clip, &gradients, site);
  AppendRegularization(model.regularizer, &gradients, site);
  const Variable gradient = gradients[0].gradient;
  const bool is_selected = root->GetVar(gradient.name())->kind == VarKind::kSelectedRows;
  const Variable dense = is_selected ? layers::SelectedRowsToDense(gradient) : gradient;
  EXPECT_THAT(VerifyProgram(DefaultOpRegistry(), *trained.program), ElementsAre());

  Executor exe(Place::Cpu());
  exe.Run(startup);
  const std::vector<Tensor> fetched =
      exe.Compile(*trained.program, options).Run(Ids(), {gradient.name(), dense.name()});
  trained.gradient = fetched[0];
  trained.dense = fetched[1];
  return trained;
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.byte_count() == b.byte_count() &&
         std::memcmp(a.raw_data(), b.raw_data(), static_cast<size_t>(a.byte_count())) == 0;
}

TEST(SparseGradient, HasARowForEachId) {
  const Trained trained = GradientOf({.is_sparse = true});
  ASSERT_TRUE(trained.gradient.is_selected_rows());
  EXPECT_EQ(trained.gradient.height(), kRows);
  EXPECT_EQ(trained.gradient.shape(), (Shape{6, kWidth}));
  EXPECT_THAT(trained.gradient.rows(), ElementsAre(4, 0, 4, 6, 4, 1));
  EXPECT_EQ(trained.dense.shape(), (Shape{kRows, kWidth}));
}

TEST(SparseGradient, LeavesSlotsOfThePaddingRowUnused) {
  const Trained trained = GradientOf({.is_sparse = true, .padding_idx = 4});
  EXPECT_THAT(trained.gradient.rows(), ElementsAre(-1, 0, -1, 6, -1, 1));
  EXPECT_TRUE(SameBits(trained.dense, GradientOf({.padding_idx = 4}).dense));
}

TEST(SparseGradient, OfATableThatIsReadTwiceHasTheRowsOfBoth) {
  const Trained trained = GradientOf({.is_sparse = true, .is_read_twice = true});
  ASSERT_TRUE(trained.gradient.is_selected_rows());
  EXPECT_EQ(trained.gradient.shape()[0], 8);
}

TEST(SparseGradient, IsDenseWhereTheTableIsReadDensely) {
  const Trained trained = GradientOf({.is_sparse = true, .is_read_densely = true});
  EXPECT_FALSE(trained.gradient.is_selected_rows());
}

TEST(SparseGradient, IsDenseAfterARegularizer) {
  const Trained trained = GradientOf({.is_sparse = true, .regularizer = L2Decay(0.1f)});
  EXPECT_FALSE(trained.gradient.is_selected_rows());
}

TEST(SparseGradient, IsDeclaredWithTheDimsOfTheTable) {
  const Trained trained = GradientOf({.is_sparse = true, .clip = ClipByNorm(1.0f)});
  int declared = 0;
  for (const auto& var : trained.program->root()->vars()) {
    if (var->kind != VarKind::kSelectedRows) continue;
    EXPECT_EQ(var->dims, (std::vector<int64_t>{kRows, kWidth})) << var->name;
    ++declared;
  }
  EXPECT_EQ(declared, 2);
  EXPECT_TRUE(*ParseProgramText(PrintProgram(*trained.program)) == *trained.program);
  EXPECT_TRUE(*ParseProgram(SerializeProgram(*trained.program)) == *trained.program);
}

struct Variant {
  std::string name;
  Model model;
};

class SparseGradientVariants : public testing::TestWithParam<Variant> {};

TEST_P(SparseGradientVariants, StandsForTheDenseOne) {
  Model model = GetParam().model;
  const Trained dense = GradientOf(model);
  model.is_sparse = true;
  const Trained sparse = GradientOf(model);
  ASSERT_EQ(sparse.dense.shape(), dense.dense.shape());
  for (size_t i = 0; i < dense.dense.values<float>().size(); ++i) {
    const float expected = dense.dense.values<float>()[i];
    EXPECT_NEAR(sparse.dense.values<float>()[i], expected, 1e-6f * (1 + std::abs(expected))) << i;
  }
}

TEST_P(SparseGradientVariants, HasTheSameBitsWhateverMemoryIsReused) {
  Model model = GetParam().model;
  model.is_sparse = true;
  const Trained expected = GradientOf(model, {.memory = {.policy = ReusePolicy::kNone}});
  for (const ReusePolicy policy :
       {ReusePolicy::kEqual, ReusePolicy::kBestFit, ReusePolicy::kGrow, ReusePolicy::kArena}) {
    const Trained found =
        GradientOf(model, {.memory = {.policy = policy, .poison_dead_memory = true}});
    EXPECT_TRUE(SameBits(found.dense, expected.dense));
    if (expected.gradient.is_selected_rows()) {
      EXPECT_TRUE(std::ranges::equal(found.gradient.rows(), expected.gradient.rows()));
    }
  }
}

std::vector<Variant> Variants() {
  std::vector<Variant> variants;
  const std::vector<std::pair<std::string, GradientClip>> clips = {
      {"plain", {}},
      {"clip_by_value", ClipByValue(0.3f)},
      {"clip_by_norm", ClipByNorm(0.5f)},
      {"clip_by_global_norm", ClipByGlobalNorm(0.5f)}};
  for (const auto& [name, clip] : clips) {
    variants.push_back({name, {.clip = clip}});
    variants.push_back({name + "_padding", {.padding_idx = 0, .clip = clip}});
    variants.push_back({name + "_twice", {.is_read_twice = true, .clip = clip}});
    variants.push_back({name + "_twice_decay",
                        {.is_read_twice = true, .clip = clip, .regularizer = L2Decay(0.1f)}});
    variants.push_back({name + "_densely", {.is_read_densely = true, .clip = clip}});
  }
  return variants;
}

INSTANTIATE_TEST_SUITE_P(AllClips, SparseGradientVariants, testing::ValuesIn(Variants()),
                         [](const auto& variant) { return variant.param.name; });

TEST(SparseGradient, IsRefusedByOpsThatDoNotKnowSelectedRows) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable loss = Loss({.is_sparse = true});
  const BackwardResult result = AppendBackward(DefaultOpRegistry(), &main, loss.name());
  const Variable gradient(main.root(), result.parameters[0].gradient->name);
  const std::string message = ErrorText([&] { layers::Tanh(gradient); });
  EXPECT_THAT(message, HasSubstr("tanh"));
  EXPECT_THAT(message,
              HasSubstr("input \"X\" would be selected rows, variable \"w@GRAD\": expected "
                        "a dense tensor"));
  EXPECT_THAT(ErrorText([&] { layers::Scale(gradient, {.scale = 2.0f, .bias = 1.0f}); }),
              HasSubstr("bias = 1 and X is selected rows"));
  EXPECT_THAT(ErrorText([&] { layers::Clip(gradient, 0.5f, 1.0f); }),
              HasSubstr("expected min <= 0 <= max"));
  EXPECT_THAT(ErrorText([&] { layers::ElementwiseMul(gradient, gradient); }),
              HasSubstr("input \"Y\" would be selected rows"));
  EXPECT_THAT(ErrorText([&] { layers::SelectedRowsToDense(loss); }),
              HasSubstr("X is a dense float32"));
}

TEST(SparseGradient, IsRefusedAsAFeedAndAsAPersistable) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable loss = Loss({.is_sparse = true});
  const BackwardResult result = AppendBackward(DefaultOpRegistry(), &main, loss.name());
  Var* gradient = result.parameters[0].gradient;
  Executor exe(Place::Cpu());
  exe.Run(startup);
  FeedList feeds = Ids();
  feeds[0].second = Tensor({2, 3}, DType::kInt64, Place::Cpu(), Layout::SelectedRows(9));
  EXPECT_THAT(ErrorText([&] { exe.Compile(main).Run(feeds, {loss.name()}); }),
              HasSubstr("feed \"ids\": layout selected_rows(height 9) given, plain expected"));
  gradient->persistable = true;
  EXPECT_THAT(ErrorText([&] { exe.Compile(main).Run(Ids(), {loss.name()}); }),
              HasSubstr("the persistable output \"w@GRAD\" would be selected rows"));
}

TEST(SparseGradient, IsFoundByTheVerifierWhereItIsDeclaredDense) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable loss = Loss({.is_sparse = true});
  const BackwardResult result = AppendBackward(DefaultOpRegistry(), &main, loss.name());
  result.parameters[0].gradient->kind = VarKind::kLoDTensor;
  const std::vector<std::string> messages = VerifyProgram(DefaultOpRegistry(), main);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_THAT(messages[0], HasSubstr("output \"w@GRAD\" is declared as float32 [7, 3], but the op "
                                     "makes selected rows of float32 [7, 3]"));
}

TEST(SparseGradient, RefusesAnIdOutsideTheTable) {
  const std::string message = ErrorText([] {
    Program main, startup;
    const ProgramGuard guard(&main, &startup);
    const Variable loss = Loss({.is_sparse = true});
    AppendBackward(DefaultOpRegistry(), &main, loss.name());
    Executor exe(Place::Cpu());
    exe.Run(startup);
    FeedList feeds = Ids();
    feeds[0].second = Tensor::FromValues<int64_t>({2, 3}, {4, 0, 4, 7, 4, 1});
    exe.Compile(main).Run(feeds, {"w@GRAD"});
  });
  EXPECT_THAT(message, HasSubstr("Ids[3] = 7 is outside [0, 7)"));
}

// Programs of Fluid call the op lookup_table and merge before they take a norm.
TEST(SparseGradient, OfAProgramOfFluidRuns) {
  const auto program = ParseProgramText(R"(program { block 0 {
    var ids int64 [3, 1] stop_gradient
    param w float32 [4, 2] persistable
    var out float32 [3, 2]
    var loss float32 []
    {Out: [out]} = lookup_table(W: [w], Ids: [ids]) {is_sparse = true, padding_idx = long -1}
    {Out: [loss]} = mean(X: [out])
  } })");
  AppendBackward(DefaultOpRegistry(), program.get(), "loss");
  Block* root = program->root();
  const auto append = [&](const std::string& type, const std::string& x, const std::string& out) {
    Op op(type);
    op.SetInput("X", {x}).SetOutput("Out", {out});
    InferOp(DefaultOpRegistry(), root, root->AppendOp(std::move(op)));
  };
  append("merge_selected_rows", "w@GRAD", "merged");
  append("get_tensor_from_selected_rows", "merged", "values");
  append("square", "values", "squares");
  append("mean", "squares", "mean_square");
  EXPECT_EQ(root->GetVar("merged")->kind, VarKind::kSelectedRows);
  EXPECT_EQ(root->GetVar("values")->kind, VarKind::kLoDTensor);
  const auto loaded = ParseProgram(SerializeProgram(*program));
  EXPECT_THAT(VerifyProgram(DefaultOpRegistry(), *loaded), ElementsAre());
  Executor exe(Place::Cpu());
  exe.scope().Assign("w", Tensor::FromValues<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  const std::vector<Tensor> fetched =
      exe.Compile(*loaded).Run({{"ids", Tensor::FromValues<int64_t>({3, 1}, {2, 0, 2})}},
                               {"merged", "values", "mean_square"});
  const float g = 1.0f / 6;
  EXPECT_THAT(fetched[0].rows(), ElementsAre(0, 2, -1));
  EXPECT_THAT(fetched[1].ToVector<float>(), ElementsAre(g, g, 2 * g, 2 * g, 0, 0));
  EXPECT_FLOAT_EQ(fetched[2].Item<float>(), 10 * g * g / 6);
}

TEST(SparseGradient, TrainsAsTheDenseOneWithARegularizer) {
  const auto train = [](bool is_sparse) {
    Program main, startup;
    const ProgramGuard guard(&main, &startup);
    optimizer::Sgd({.learning_rate = 0.1f, .regularization = L2Decay(0.01f)})
        .Minimize(Loss({.is_sparse = is_sparse, .is_read_twice = true}));
    Executor exe(Place::Cpu());
    exe.Run(startup);
    CompiledProgram step = exe.Compile(main);
    for (int i = 0; i < 5; ++i) step.Run(Ids(), {});
    return CopyToCpu(exe.scope().Get("w")).ToVector<float>();
  };
  const std::vector<float> dense = train(false);
  const std::vector<float> sparse = train(true);
  for (size_t i = 0; i < dense.size(); ++i) EXPECT_NEAR(sparse[i], dense[i], 1e-6) << i;
}

}  // namespace
}  // namespace skiff
